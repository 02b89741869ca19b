package pagelog

import (
	"errors"
	"fmt"

	"github.com/tidemark-log/tidemark/cursor"
)

// One error per thing that can be the matter. All are matched with errors.Is;
// what is returned says where and what to do.
var (
	// ErrLocked: another writer, here or in another process, has the log.
	ErrLocked = errors.New("held by another writer")
	// ErrUncertain: the commit reached the file, or may have, and is not known
	// to be durable. It must not be repeated before the log was opened again.
	ErrUncertain = errors.New("outcome unknown until the log is opened again")
	// ErrPoisoned: an earlier commit was uncertain. Nothing more is written;
	// close the log and open it again. It is a *PoisonedError.
	ErrPoisoned = errors.New("log is poisoned")
	// ErrCorrupt: acknowledged bytes are damaged. It is a *CorruptError.
	ErrCorrupt = errors.New("log is corrupt")
	// ErrDiverged: the file holds another history than the one expected.
	ErrDiverged = cursor.ErrDiverged
	// ErrCompacted: the commits asked for were dropped by retention, or lie
	// before the log's base. It is a *cursor.CompactedError.
	ErrCompacted = cursor.ErrCompacted
	// ErrReplaced: the file was unlinked, replaced or shortened under the
	// writer or reader.
	ErrReplaced = errors.New("file was removed, replaced or shortened")
	// ErrLostCommits: the log ends before the revision expected of it. It is a
	// *LostError.
	ErrLostCommits = errors.New("log lost commits")
	// ErrUnsupported: a newer version of Tidemark wrote this.
	ErrUnsupported = errors.New("needs a newer version")
	// ErrTooLarge: a record, a group or a count is over a limit of the log.
	ErrTooLarge = errors.New("over a limit of the log")
	// ErrNoSpace: the disk, a quota or the log's own maximum size is full.
	// Nothing was written; the log goes on when there is space.
	ErrNoSpace = errors.New("no space for the commit")
	// ErrClosed: the log or reader was closed.
	ErrClosed = errors.New("log is closed")
	// ErrNotALog: the file is empty, short, zero or of another kind.
	ErrNotALog = errors.New("not a Tidemark log")
	// ErrFileSystem: the file lives on a network or user-space file system,
	// where locks and syncs may not mean what they must.
	ErrFileSystem = errors.New("refused on this file system")
	// ErrNotFound: no commit has this revision yet.
	ErrNotFound = errors.New("no such revision")
	// ErrEmpty: a batch without records is not a commit.
	ErrEmpty = errors.New("batch has no records")
)

// CorruptError is damage to acknowledged bytes, located. It is ErrCorrupt to
// errors.Is, and the cause beneath it.
type CorruptError struct {
	Offset   int64  // byte offset of the damaged structure
	Page     int64  // page that holds it
	Revision uint64 // the first revision that cannot be read
	What     string // which structure, with what was found and wanted
	Err      error  // the cause
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v at offset %d (page %d), revision %d: %s: %v",
		ErrCorrupt, e.Offset, e.Page, e.Revision, e.What, e.Err)
}

// Is makes a CorruptError ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// PoisonedError says why a log writes nothing more. It is ErrPoisoned to
// errors.Is, and the first cause beneath it.
type PoisonedError struct {
	Durable uint64 // the last revision known to be durable
	Cause   error  // what made a commit uncertain, first
}

func (e *PoisonedError) Error() string {
	return fmt.Sprintf("%v after revision %d, close it and open it again: %v", ErrPoisoned, e.Durable, e.Cause)
}

// Is makes a PoisonedError ErrPoisoned.
func (e *PoisonedError) Is(target error) bool { return target == ErrPoisoned }

// Unwrap returns the first cause.
func (e *PoisonedError) Unwrap() error { return e.Cause }

// LostError says how much shorter the log is than was expected. It is
// ErrLostCommits to errors.Is.
type LostError struct {
	Have uint64 // the head found
	Want uint64 // the revision expected
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%v: it ends at revision %d, revision %d was expected", ErrLostCommits, e.Have, e.Want)
}

// Is makes a LostError ErrLostCommits.
func (e *LostError) Is(target error) bool { return target == ErrLostCommits }
