package authority

import (
	"context"
	"errors"

	"github.com/tidemark-log/tidemark/internal/securedir"
)

// Sentinels, one per thing a caller can do about it. They come wrapped in
// *Error, except ErrVerification, which always comes alone.
var (
	// ErrInvalid means an argument is refused; nothing was touched.
	ErrInvalid = errors.New("invalid argument")
	// ErrUnavailable means the store cannot be used or asked now; nothing
	// changed, and the same call may be made again.
	ErrUnavailable = errors.New("store unavailable")
	// ErrBusy means another owner holds the run, or live leases hold the
	// authority.
	ErrBusy = errors.New("busy")
	// ErrState means the run's state does not allow the operation; nothing
	// changed.
	ErrState = errors.New("not allowed in this state")
	// ErrLog means the log is not the run's, not under this lease's token, or not
	// where the run is; the class says which. Nothing changed.
	ErrLog = errors.New("not the run's log at its boundary")
	// ErrVerification is every reason not to believe an envelope: unknown
	// scope, key generation or run, a wrong MAC, a claim that was used.
	ErrVerification = errors.New("authority: verification failed")
	// ErrUncertain means the commit step was entered and failed: the change may
	// or may not be durable. It is never retried, and this process never
	// touches the run again.
	ErrUncertain = errors.New("outcome uncertain")
	// ErrLost means the run's files are no longer those this lease wrote. No
	// write was made; only Close is left.
	ErrLost = errors.New("ownership lost")
	// ErrCapacity means a limit is reached: runs, key generations, or the
	// transitions of one run.
	ErrCapacity = errors.New("limit reached")
	// ErrClosed means the authority, lease or import is closed.
	ErrClosed = errors.New("closed")
	// ErrRelocated means the directory is a copy: it is not the one its keyring
	// was made in.
	ErrRelocated = errors.New("directory is a copy")
)

// Error is a sentinel with the operation it ended and a class: what about the
// system was in the way ("full", "permission", "too many files", "busy",
// "unsafe", "damaged", …), empty if nothing was. It carries no path, no system
// error number, no key and no content, and hides none of them inside.
type Error struct {
	Op    string
	Class string
	err   error
}

// Error is the message.
func (e *Error) Error() string {
	s := "authority: " + e.Op + ": " + e.err.Error()
	if e.Class != "" {
		s += " (" + e.Class + ")"
	}
	return s
}

// Unwrap is the sentinel, or the context's error.
func (e *Error) Unwrap() error { return e.err }

// fail is the one place that builds an error.
func fail(op string, sentinel error) error { return &Error{Op: op, err: sentinel} }

// failed adds the class of what the system said, and drops the rest of it.
// What happened before the commit step is passed with ErrUnavailable; a lock
// that is taken is busy, and the end of a context stays what it is.
func failed(op string, sentinel, cause error) error {
	switch {
	case sentinel == ErrUnavailable && errors.Is(cause, securedir.ErrLocked):
		return &Error{Op: op, err: ErrBusy}
	case sentinel == ErrUnavailable && errors.Is(cause, context.Canceled):
		return &Error{Op: op, err: context.Canceled}
	case sentinel == ErrUnavailable && errors.Is(cause, context.DeadlineExceeded):
		return &Error{Op: op, err: context.DeadlineExceeded}
	}
	var own *Error
	if errors.As(cause, &own) || cause == ErrVerification {
		return cause
	}
	return &Error{Op: op, Class: securedir.Class(cause), err: sentinel}
}

// damaged is a run whose newest record cannot be believed: only Resolve helps.
func damaged(op string) error { return &Error{Op: op, Class: "damaged", err: ErrState} }

// live turns the end of a context into the error of an operation that has
// changed nothing.
func live(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &Error{Op: op, err: err}
	}
	return nil
}
