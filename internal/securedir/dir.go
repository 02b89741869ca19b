package securedir

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
)

// Dir is a bound private directory. Its methods may run concurrently; Close
// waits for nobody.
type Dir struct {
	sys  System
	fd   FD
	uid  uint32
	stat Stat
	once sync.Once
}

// Stat is the directory's identity as it was bound.
func (d *Dir) Stat() Stat { return d.stat }

// Names lists the directory, in no order.
func (d *Dir) Names() ([]string, error) { return d.sys.Names(d.fd) }

// Sync makes names created, renamed and removed before the call durable.
func (d *Dir) Sync() error { return d.sys.Sync(d.fd) }

// Close releases the directory; open files stay usable. It is idempotent.
func (d *Dir) Close() error {
	var err error
	d.once.Do(func() { err = d.sys.Close(d.fd) })
	return err
}

// Lookup asks a name, following nothing.
func (d *Dir) Lookup(name string) (Stat, error) {
	if err := judgeName(name); err != nil {
		return Stat{}, err
	}
	return d.sys.StatAt(d.fd, name)
}

// Open opens an existing file for reading or for reading and writing, after
// judging type, owner, mode and links by descriptor and proving that the name
// leads to it. It waits for nothing, not for a FIFO either.
func (d *Dir) Open(name string, how How) (*File, error) {
	if err := judgeName(name); err != nil {
		return nil, err
	}
	fd, err := d.sys.Open(d.fd, name, how)
	if err != nil {
		return nil, err
	}
	f := &File{dir: d, fd: fd, name: name}
	if err := f.inspect(); err != nil {
		_ = f.Close() // nothing was done through it
		return nil, err
	}
	return f, nil
}

func (f *File) inspect() error {
	st, err := f.dir.sys.Stat(f.fd)
	if err != nil {
		return err
	}
	f.stat = st
	return judgeFile(st, f.dir.uid)
}

// Read reads a whole file of at most limit bytes, judged as Open judges, into
// buf if that is large enough.
func (d *Dir) Read(name string, buf []byte, limit int64) ([]byte, Stat, error) {
	f, err := d.Open(name, Read)
	if err != nil {
		return nil, Stat{}, err
	}
	st := f.stat
	if st.Size > limit {
		return nil, st, errors.Join(ErrUnsafe, f.Close())
	}
	if int64(cap(buf)) < st.Size {
		buf = make([]byte, st.Size)
	}
	buf = buf[:st.Size]
	return buf, st, errors.Join(f.ReadAt(buf, 0), f.Close())
}

// tempPrefix begins the name of every file that has no name of its own yet.
const tempPrefix = "tmp-"

func randomName(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", err
	}
	return tempPrefix + hex.EncodeToString(b[:]), nil
}

// Temp creates a file without a name of its own: exactly 0600 whatever the
// umask, and locked, so that Sweep of another process leaves it alone. A sweep
// that comes between creating and locking takes the file; then another is made.
func (d *Dir) Temp(random io.Reader) (*File, error) {
	const tries = 100
	for n := 1; ; n++ {
		f, err := d.temp(random)
		swept := errors.Is(err, ErrChanged) || errors.Is(err, ErrLocked)
		if !swept || n == tries {
			return f, err
		}
	}
}

func (d *Dir) temp(random io.Reader) (*File, error) {
	name, err := randomName(random)
	if err != nil {
		return nil, err
	}
	fd, err := d.sys.Open(d.fd, name, Exclusive)
	if err != nil {
		return nil, err
	}
	f := &File{dir: d, fd: fd, name: name}
	err = d.sys.Chmod(fd, fileMode)
	if err == nil {
		err = f.Lock()
	}
	if err == nil {
		err = f.inspect() // a swept file has no name left
	}
	if err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	return f, nil
}

// Sweep removes what creators that died left behind and reports how many. A
// temporary whose creator lives is locked and stays.
func (d *Dir) Sweep() (int, error) {
	names, err := d.Names()
	if err != nil {
		return 0, err
	}
	swept := 0
	for _, name := range names {
		if !strings.HasPrefix(name, tempPrefix) || judgeName(name) != nil {
			continue
		}
		gone, err := d.sweepOne(name)
		if err != nil {
			return swept, err
		}
		if gone {
			swept++
		}
	}
	return swept, nil
}

func (d *Dir) sweepOne(name string) (bool, error) {
	st, err := d.sys.StatAt(d.fd, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if st.Kind == Directory {
		return false, nil // not ours: nothing here makes directories
	}
	if judgeFile(st, d.uid) != nil {
		// Killed before its mode was set, or not a file: nobody uses it.
		return true, ignoreMissing(d.sys.Unlink(d.fd, name))
	}
	fd, err := d.sys.Open(d.fd, name, Read)
	if err != nil {
		return false, ignoreMissing(err)
	}
	err = d.sys.Flock(fd, LockExclusive)
	if err == nil {
		err = ignoreMissing(d.sys.Unlink(d.fd, name))
	}
	if errors.Is(err, ErrLocked) {
		return false, d.sys.Close(fd)
	}
	return err == nil, errors.Join(err, d.sys.Close(fd))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// File is an open regular file of the directory, judged at opening.
type File struct {
	dir  *Dir
	fd   FD
	name string
	stat Stat
	held bool // the whole-file lock; guarded by whoever locks, unlocks and closes
	once sync.Once
}

// Stat is what was judged at opening.
func (f *File) Stat() Stat { return f.stat }

// ReadAt fills p or fails; a file that ends early is io.ErrUnexpectedEOF.
func (f *File) ReadAt(p []byte, off int64) error {
	for len(p) > 0 {
		n, err := f.dir.sys.ReadAt(f.fd, p, off)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// WriteAt writes all of p; short writes are continued until the system reports
// an error. After an error the bytes of the stretch are unknown.
func (f *File) WriteAt(p []byte, off int64) error {
	for len(p) > 0 {
		n, err := f.dir.sys.WriteAt(f.fd, p, off)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// Sync makes bytes and metadata durable. It is called once, never repeated.
func (f *File) Sync() error { return f.dir.sys.Sync(f.fd) }

// DataSync makes bytes and size durable. It is called once, never repeated.
func (f *File) DataSync() error { return f.dir.sys.DataSync(f.fd) }

// Check proves that the descriptor still has exactly one name and that the
// file's name leads to it: ErrChanged otherwise.
func (f *File) Check() error {
	named, err := f.dir.sys.StatAt(f.dir.fd, f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrChanged
	}
	if err != nil {
		return err
	}
	if !named.Same(f.stat) {
		return ErrChanged
	}
	return judgeFile(named, f.dir.uid)
}

// Lock takes the whole-file lock without waiting: ErrLocked if it is held.
func (f *File) Lock() error {
	err := f.dir.sys.Flock(f.fd, LockExclusive)
	f.held = f.held || err == nil
	return err
}

// Unlock drops the whole-file lock.
func (f *File) Unlock() error {
	f.held = false
	return f.dir.sys.Flock(f.fd, Unlock)
}

// Range works on the one-byte lock at an offset of the file.
func (f *File) Range(off int64, op Lock) error { return f.dir.sys.RangeLock(f.fd, off, op) }

// Publish gives a temporary its name, which must be free: fs.ErrExist if not.
func (f *File) Publish(name string) error { return f.rename(name, NoReplace) }

// Replace gives a temporary the name of an existing file, which loses it.
func (f *File) Replace(name string) error { return f.rename(name, ReplaceOld) }

func (f *File) rename(name string, how How) error {
	if err := judgeName(name); err != nil {
		return err
	}
	if err := f.dir.sys.Rename(f.dir.fd, f.name, name, how); err != nil {
		return err
	}
	f.name = name
	return nil
}

// Discard removes a temporary and closes it. It must not be called once the
// file has been published: whatever happened then, the name stays.
func (f *File) Discard() error {
	var err error
	if strings.HasPrefix(f.name, tempPrefix) {
		err = ignoreMissing(f.dir.sys.Unlink(f.dir.fd, f.name))
	}
	return errors.Join(err, f.Close())
}

// Close drops the descriptor and every lock taken through it. The whole-file
// lock is dropped by name first: a child between fork and exec holds a copy of
// the descriptor, and would keep it. Close is idempotent.
func (f *File) Close() error {
	var err error
	f.once.Do(func() {
		if f.held {
			err = f.Unlock()
		}
		err = errors.Join(err, f.dir.sys.Close(f.fd))
	})
	return err
}
