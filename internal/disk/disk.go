// Package disk is the only seam between the engine and the operating system:
// a directory held by descriptor and the files in it. It knows files and no
// bytes. Two implementations exist: the operating system's (OpenDir) and the
// crash simulator's (internal/simdisk); TestConformance holds both to the same
// behaviour.
//
// Everything is relative to the directory's descriptor, follows no symbolic
// link in the final component, and is closed on exec. Nothing here retries a
// failed Sync, and nothing here hides a failure.
//
// Every method reports fs.ErrClosed once its Dir or File is closed, and
// fs.ErrInvalid for a name that CheckName refuses, for a negative or overflowing
// stretch, and for a File of another Dir.
package disk

import (
	"errors"
	"io"
)

// Errors that the operating systems spell differently. Everything else comes
// back as the system gave it, wrapped in *fs.PathError, so that
// errors.Is(err, fs.ErrNotExist), fs.ErrExist and fs.ErrPermission work.
var (
	// ErrLocked means another descriptor holds the lock.
	ErrLocked = errors.New("disk: locked by another writer")
	// ErrNotRegular means the name leads to a directory, a FIFO, a device,
	// a socket or a symbolic link, none of which is ever opened.
	ErrNotRegular = errors.New("disk: not a regular file")
	// ErrNoSpace means the file system, the quota or the file size limit is
	// exhausted (ENOSPC, EDQUOT, EFBIG and their kin).
	ErrNoSpace = errors.New("disk: no space left")
	// ErrNoPunch means this file system cannot free the inside of a file.
	ErrNoPunch = errors.New("disk: cannot punch holes here")
)

// Access says what an opened file may be used for.
type Access int

// The two ways to open an existing file.
const (
	ReadOnly Access = iota
	ReadWrite
)

// FileSystem is what the engine must know of the place a file lives in.
type FileSystem struct {
	Name        string // the system's name for it, for messages: "ext4", "nfs"
	Network     bool   // network or FUSE: locks and syncs may mean little there
	CopyOnWrite bool   // writing zeros ahead buys nothing there (btrfs, zfs, …)
}

// Info is what a descriptor says of its file.
type Info struct {
	Size  int64  // bytes
	Links uint64 // names the file has; 0 once it is unlinked everywhere
}

// Dir is a directory. Its methods may run concurrently.
type Dir interface {
	// Open opens the existing regular file with this name.
	// ErrNotRegular for anything else; it never blocks (a FIFO) and never
	// follows a symbolic link.
	Open(name string, access Access) (File, error)
	// Create makes a new file, mode 0600, open for reading and writing;
	// fs.ErrExist if the name is taken.
	Create(name string) (File, error)
	// Publish gives f, created in this directory, its final name in one
	// step and without ever replacing: fs.ErrExist if the name is taken, and
	// then f keeps its old name.
	Publish(f File, name string) error
	// Replace gives f, created in this directory, the name of an existing
	// file in one step; the old file loses that name. If nothing has the name,
	// f simply takes it.
	Replace(f File, name string) error
	// Remove unlinks a file. One that is open stays usable; Windows without
	// POSIX semantics (FAT, old shares) unlinks it only when it is closed.
	Remove(name string) error
	// Names lists the directory, in no order.
	Names() ([]string, error)
	// Sync makes names durable: those of files created, published, replaced
	// and removed before the call. It is called once, like File.Sync.
	Sync() error
	// FileSystem says where the directory lives.
	FileSystem() (FileSystem, error)
	// Close releases the descriptor; open files stay usable, Named included,
	// for which the system's handle lives on until the last of them is closed.
	Close() error
}

// File is an open regular file. Its methods may run concurrently.
type File interface {
	// ReadAt is io.ReaderAt: a short count comes with an error, io.EOF at the
	// end of the file. Interrupted reads are continued.
	io.ReaderAt
	// WriteAt is io.WriterAt: interrupted and short writes are continued
	// until all is written or the system reports an error; after an error the
	// bytes of the stretch are unknown.
	io.WriterAt
	// Allocate reserves space for [off, off+n) so that writing there cannot
	// run out of it, extending the size with zeros where needed. Bytes that
	// exist are unchanged. ErrNoSpace changes no byte below the old size.
	Allocate(off, n int64) error
	// Punch frees [off, off+n), which then reads as zeros; the size is
	// unchanged. ErrNoPunch where the file system cannot.
	Punch(off, n int64) error
	// Truncate sets the size.
	Truncate(size int64) error
	// Sync makes every write that returned before the call durable, with the
	// metadata needed to read it back (fdatasync, F_FULLFSYNC,
	// FlushFileBuffers). It is called once; a failure is reported, never
	// retried. It does not make the file's name durable: see Dir.Sync.
	Sync() error
	// Stat asks the descriptor. It does not allocate.
	Stat() (Info, error)
	// Named reports whether the name the file was opened, created or
	// published under leads to this very file now: not to a copy, nor to a
	// symbolic link to it; and, if it does, the file's size, in the same look.
	// It does not allocate (save on macOS, a few bytes).
	Named() (size int64, named bool, err error)
	// Lock takes the exclusive writer lock without waiting; ErrLocked if any
	// other descriptor, of this process or another, holds it; locking again what
	// this File holds succeeds. The file must be open for writing. Closing other
	// descriptors of the file never drops it, a child process never keeps it,
	// and the end of the process always does.
	Lock() error
	// Close waits for calls that are running, then drops the lock, if held, and
	// the descriptor.
	Close() error
}
