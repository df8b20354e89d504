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
	// ErrEffect: an effect of a check-in failed, on its own or by a constraint that
	// is checked at COMMIT. Nothing of the batch was stored.
	ErrEffect = errors.New("the effect failed")
	// ErrSchema: windrow's tables are missing, or older than the program needs.
	ErrSchema = errors.New("windrow's tables are missing or too old")
)

// Permanent marks err as hopeless: the row fails at once, without another try.
func Permanent(err error) error {
	return mark(err, handlerError{permanent: true})
}

// RetryAfter asks for another try no sooner than d from now. The try counts,
// unless err is marked by [Unavailable] as well.
func RetryAfter(d time.Duration, err error) error {
	return mark(err, handlerError{after: d, hasAfter: true})
}

// Unavailable says that the handler can't serve now, whatever the row: a service
// that is down or asks to slow down, a program that can't be started. It is not
// the row's fault, so the row goes back without losing an attempt, and the worker
// slows down until the handler serves again.
func Unavailable(err error) error {
	return mark(err, handlerError{unavailable: true})
}

// IsPermanent tells whether err was marked by [Permanent].
func IsPermanent(err error) bool {
	return find(err, func(h *handlerError) bool { return h.permanent }) != nil
}

// IsUnavailable tells whether err was marked by [Unavailable].
func IsUnavailable(err error) bool {
	return find(err, func(h *handlerError) bool { return h.unavailable }) != nil
}

// RetryDelay returns the delay that err asks for by [RetryAfter], if it does.
func RetryDelay(err error) (time.Duration, bool) {
	h := find(err, func(h *handlerError) bool { return h.hasAfter })
	if h == nil {
		return 0, false
	}
	return h.after, true
}

// handlerError is a mark on an error. One error may bear several.
type handlerError struct {
	err         error
	permanent   bool
	unavailable bool
	after       time.Duration
	hasAfter    bool
}

func (e *handlerError) Error() string { return e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }

func mark(err error, m handlerError) error {
	if err == nil {
		return nil
	}
	m.err = err
	return &m
}

// find returns the outermost mark on err for which want is true.
func find(err error, want func(*handlerError) bool) *handlerError {
	for {
		var h *handlerError
		if !errors.As(err, &h) {
			return nil
		}
		if want(h) {
			return h
		}
		err = h.err
	}
}
