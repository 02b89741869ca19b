package simdisk

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Kind is what an operation does.
type Kind int

// The operations that change something, each of which is a crash point, and
// OpRead, which is none, appears in no log and is there for faults.
const (
	OpCreate Kind = iota + 1
	OpWrite
	OpAllocate
	OpPunch
	OpTruncate
	OpSync
	OpPublish
	OpReplace
	OpRemove
	OpSyncDir
	OpRead
)

var kindNames = [...]string{
	OpCreate: "create", OpWrite: "write", OpAllocate: "allocate", OpPunch: "punch",
	OpTruncate: "truncate", OpSync: "sync", OpPublish: "publish", OpReplace: "replace",
	OpRemove: "remove", OpSyncDir: "syncdir", OpRead: "read",
}

// String returns the operation's name as the log prints it.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Op is one operation, for hooks and for the log.
type Op struct {
	N      int    // number of the operation within its FS, from 1
	Kind   Kind   // what it does
	Name   string // the file; for OpPublish and OpReplace the new name
	From   string // for OpPublish and OpReplace the old name
	Off    int64  // for OpWrite, OpAllocate, OpPunch: start in bytes
	Len    int64  // likewise: length in bytes; for OpTruncate the new size
	Inside bool   // the second crash point of a sync, after it began
	Err    error  // in the log: how it failed; nil while it runs
}

// String prints the operation in one line.
func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s", o.N, o.Kind)
	if o.Inside {
		b.WriteString(" (inside)")
	}
	switch o.Kind {
	case OpPublish, OpReplace:
		fmt.Fprintf(&b, " %s -> %s", o.From, o.Name)
	case OpWrite, OpAllocate, OpPunch:
		fmt.Fprintf(&b, " %s [%d, %d)", o.Name, o.Off, o.Off+o.Len)
	case OpTruncate:
		fmt.Fprintf(&b, " %s to %d", o.Name, o.Len)
	default:
		if o.Name != "" {
			b.WriteString(" " + o.Name)
		}
	}
	if o.Err != nil {
		fmt.Fprintf(&b, ": %v", o.Err)
	}
	return b.String()
}

// Before sets the hook that is called at every crash point: before every
// operation that changes something, and inside every File.Sync and Dir.Sync
// after it has fixed what it covers. The hook may use every method of the FS,
// EachImage above all, and may issue operations of its own. It runs in the
// goroutine of the operation; nil takes it away.
func (s *FS) Before(hook func(Op)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = hook
}

// Log prints every operation so far, one a line, oldest first. For an image it
// begins with what its origin did and with what of it landed.
func (s *FS) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.origin != nil {
		b.WriteString(s.origin.describe())
	}
	for _, op := range s.log {
		b.WriteString(op.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Number returns the number of this image among those of its EachImage call,
// from 0, by which a failure can be found again. It is 0 for what is no image.
func (s *FS) Number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.origin == nil {
		return 0
	}
	return s.origin.number
}

// Ops returns how many operations have begun.
func (s *FS) Ops() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log)
}

// start is the crash point before an operation. It returns the operation's
// number. The lock is not held while the hook runs.
func (s *FS) start(op Op) Op {
	s.mu.Lock()
	op.N = len(s.log) + 1
	s.log = append(s.log, op)
	hook := s.before
	s.mu.Unlock()
	if hook != nil {
		hook(op)
	}
	return op
}

// inside is the crash point within a sync.
func (s *FS) inside(op Op) {
	s.mu.Lock()
	hook := s.before
	s.mu.Unlock()
	if hook != nil {
		op.Inside = true
		hook(op)
	}
}

// finish records how an operation ended. The lock is held.
func (s *FS) finish(op Op, err error) error {
	if err == nil {
		return nil
	}
	if op.N <= len(s.log) {
		s.log[op.N-1].Err = err
	}
	return wrap(op.Kind.String(), op.Name, err)
}

// wrap gives errors the shape that package disk promises.
func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var already *fs.PathError
	if errors.As(err, &already) {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
