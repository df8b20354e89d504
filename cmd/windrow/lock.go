package main

import (
	"fmt"

	"github.com/gofrs/flock"

	"github.com/windrow-go/windrow/migrations"
)

// lockFile notes, until unlock, that this process works on an SQLite file: workers
// share it (TryRLock), a lone run keeps it to itself (TryLock). It comes after the
// file has been opened, since a migration needs the same lock.
func lockFile(address string, try func(*flock.Flock) (bool, error)) (unlock func(), err error) {
	if isPostgres(address) {
		return func() {}, nil
	}
	file, err := fileOf(address)
	if err != nil {
		return nil, err
	}
	lock := flock.New(file + migrations.LockSuffix)
	ok, err := try(lock)
	if err != nil {
		return nil, fmt.Errorf("the folder of the database can't be written to: %w; name another place with --database", err)
	}
	if !ok {
		return nil, &exitError{code: exitLocked, err: fmt.Errorf("%s is being worked on by another windrow; wait for it, or stop it first", file)}
	}
	return func() { _ = lock.Unlock() }, nil
}
