package disk

import (
	"errors"
	"fmt"
	"io/fs"
)

// spaceError is a system error that means "out of space". It matches
// ErrNoSpace and still carries the system's own number.
type spaceError struct{ err error }

func (e *spaceError) Error() string { return ErrNoSpace.Error() + ": " + e.err.Error() }

func (e *spaceError) Unwrap() []error { return []error{ErrNoSpace, e.err} }

// wrap builds the one shape in which errors leave this package: operation,
// path, and the system's error, or ErrNoSpace around it.
func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if isNoSpace(err) && !errors.Is(err, ErrNoSpace) {
		err = &spaceError{err}
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// notRegular says what a name leads to instead of a regular file.
func notRegular(what string) error {
	return fmt.Errorf("%w: %s", ErrNotRegular, what)
}
