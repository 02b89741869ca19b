// Package securedir binds a private directory for the lifetime of a process:
// it walks the path once from the root, judges every owner and mode on the way,
// keeps the descriptor, and from then on knows names only, never paths.
// Whoever renames or replaces a component later cannot redirect anything.
//
// Three kinds of knowledge are kept apart. Decisions (may this ancestor be
// trusted, is this file ours, is this file system fit) are pure functions over
// plain values in judge.go. System calls are the System interface, one method
// per call, with two implementations: the operating system (Host) and the
// crash simulator (Sim). Dir and File put the two together.
//
// Out of scope, by decision: another process of the same user, and root. Both
// can read every key here anyway.
package securedir

import "errors"

// Errors of this package; everything else is what the operating system said.
var (
	// ErrUnsafe means an owner, a mode, a link count or a file type does not
	// allow this object to be trusted. Nothing was changed.
	ErrUnsafe = errors.New("securedir: not safe to use")
	// ErrChanged means a name no longer leads to the object it was opened as.
	ErrChanged = errors.New("securedir: name leads elsewhere")
	// ErrName means a name or path that is refused before any system call.
	ErrName = errors.New("securedir: name refused")
	// ErrFileSystem means the directory lives on a file system whose locks or
	// syncs are not known to hold.
	ErrFileSystem = errors.New("securedir: file system refused")
	// ErrUnsupported means this operating system has no implementation.
	ErrUnsupported = errors.New("securedir: operating system not supported")
	// ErrLocked means another descriptor holds the lock.
	ErrLocked = errors.New("securedir: locked")
)

// FD names an object a System has opened.
type FD int

// Kind is what a name leads to.
type Kind uint8

// The kinds that matter; a symbolic link is never followed and is Other.
const (
	Other Kind = iota
	Directory
	Regular
)

// Stat is what the system says of an object.
type Stat struct {
	Device, Inode uint64
	Birth         int64 // nanoseconds since 1970 at creation; 0 where unknown
	Kind          Kind
	Mode          uint32 // permission, set-id and sticky bits: 07777
	UID           uint32
	Links         uint64
	Size          int64
}

// Same reports whether two stats are of one object.
func (s Stat) Same(o Stat) bool {
	return s.Device == o.Device && s.Inode == o.Inode && s.Kind == o.Kind
}

// How says how Open opens and how Rename treats an existing target.
type How uint8

// Ways of opening (the first three) and renaming (the last two).
const (
	Read       How = iota // existing file, reading
	ReadWrite             // existing file, reading and writing
	Exclusive             // new file, mode 0600 before the umask
	NoReplace             // the target name must be free
	ReplaceOld            // the target name is taken over
)

// Lock is an operation on a lock. None of them waits.
type Lock uint8

// The operations.
const (
	LockExclusive Lock = iota
	LockShared
	Unlock
	LockProbe // ErrLocked if LockExclusive would be refused; changes nothing
)

// System is the thin shell around system calls: one method, one call. It
// decides nothing. No method follows a symbolic link in the last component,
// none waits, and every descriptor is closed on exec. Interrupted calls are
// continued except the syncs, which are called once. Methods may run
// concurrently.
type System interface {
	// UID is the effective user, in the numbers that Stat has.
	UID() uint32
	// Split cuts an absolute path into the root it begins at and its components,
	// and refuses what the system would read in another way than it is written.
	Split(path string) (root string, parts []string, err error)
	// Root opens a root of the name space for walking.
	Root(root string) (FD, error)
	// Walk opens a child directory for walking; reading it is not required.
	Walk(dir FD, name string) (FD, error)
	// Reopen opens a walked directory for reading, syncing and locking.
	Reopen(dir FD) (FD, error)
	// Bound reports ErrChanged if the system has another path than this one for a
	// directory that was walked to. Where a walk cannot be led astray it is nil.
	Bound(fd FD, path string) error
	// Mkdir creates a directory, mode 0700 before the umask.
	Mkdir(dir FD, name string) error
	// Open opens or creates a regular file.
	Open(dir FD, name string, how How) (FD, error)
	// Stat asks the descriptor.
	Stat(fd FD) (Stat, error)
	// StatAt asks the name.
	StatAt(dir FD, name string) (Stat, error)
	// FileSystem is the type number of the file system.
	FileSystem(fd FD) (FileSystem, error)
	// Chmod sets the exact mode through the descriptor.
	Chmod(fd FD, mode uint32) error
	// ReadAt and WriteAt are single calls and may be short.
	ReadAt(fd FD, p []byte, off int64) (int, error)
	WriteAt(fd FD, p []byte, off int64) (int, error)
	// Sync makes a file with all its metadata, or a directory's names, durable.
	Sync(fd FD) error
	// DataSync makes a file's bytes and size durable.
	DataSync(fd FD) error
	// Rename moves a name within a directory.
	Rename(dir FD, from, to string, how How) error
	// Unlink removes a file's name.
	Unlink(dir FD, name string) error
	// Rmdir removes an empty directory.
	Rmdir(dir FD, name string) error
	// Names lists a directory, in no order.
	Names(dir FD) ([]string, error)
	// Flock works on the whole-file lock of the descriptor.
	Flock(fd FD, op Lock) error
	// RangeLock works on the one-byte lock at an offset; it belongs to the
	// descriptor and is dropped when that is closed.
	RangeLock(fd FD, off int64, op Lock) error
	// Close drops the descriptor and its locks.
	Close(fd FD) error
}
