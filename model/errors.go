package model

import (
	"errors"
	"time"
)

// What a store's errors mean to whoever runs a worker; test with errors.Is.
var (
	// ErrUnavailable: the database can't be reached or can't serve just now.
	// Nothing is known to be wrong with what was asked: ask again later. If it
	// was a check-in, it may have been stored; asking again is safe.
	ErrUnavailable = errors.New("the database is unavailable")
	// ErrRefused: the database refused the values themselves (SQLSTATE class
	// 22 or 54). The same batch will be refused again.
	ErrRefused = errors.New("the database refuses the data")
	// ErrSchema: windrow's tables are missing, or older than the program needs.
	ErrSchema = errors.New("windrow's tables are missing or too old")
)

// Permanent marks err as hopeless: the row fails at once, without another try.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &handlerError{err: err, permanent: true}
}

// RetryAfter asks for another try no sooner than d from now. The try counts.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &handlerError{err: err, after: d, hasAfter: true}
}

// IsPermanent tells whether err was marked by [Permanent].
func IsPermanent(err error) bool {
	var h *handlerError
	return errors.As(err, &h) && h.permanent
}

// RetryDelay returns the delay that err asks for by [RetryAfter], if it does.
func RetryDelay(err error) (time.Duration, bool) {
	var h *handlerError
	if errors.As(err, &h) && h.hasAfter {
		return h.after, true
	}
	return 0, false
}

type handlerError struct {
	err       error
	permanent bool
	after     time.Duration
	hasAfter  bool
}

func (e *handlerError) Error() string { return e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }
