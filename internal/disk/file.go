//go:build linux || darwin || windows

package disk

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// osFile is an open regular file of the operating system.
//
// A handle number is reused by the system as soon as it is closed, so a write
// that raced with Close could land in another file. Every call therefore holds
// mu shared, and Close takes it exclusively.
type osFile struct {
	id      identity // which file this is; fixed while the handle is open
	dir     *dirHandle
	dirPath string
	name    atomic.Pointer[entry] // the name Named asks for

	mu     sync.RWMutex
	sys    handle // guarded by mu
	closed bool   // guarded by mu

	lockMu sync.Mutex // serialises Lock
	locked bool       // guarded by lockMu: this handle holds the writer lock
}

// entry is a name in both spellings, so that asking for it does not allocate.
type entry struct {
	text string
	sys  sysName
}

func (f *osFile) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return wrap(op, filepath.Join(f.dirPath, f.name.Load().text), err)
}

// begin admits one call, which must end with f.mu.RUnlock.
func (f *osFile) begin() error {
	f.mu.RLock()
	if f.closed {
		f.mu.RUnlock()
		return fs.ErrClosed
	}
	return nil
}

// ReadAt implements File.
func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.begin(); err != nil {
		return 0, f.wrap("read", err)
	}
	defer f.mu.RUnlock()
	n, err := readFull(f.sys, p, off)
	if err == io.EOF { // io.ReaderAt wants the bare value
		return n, err
	}
	return n, f.wrap("read", err)
}

// WriteAt implements File.
func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.begin(); err != nil {
		return 0, f.wrap("write", err)
	}
	defer f.mu.RUnlock()
	n, err := writeFull(f.sys, p, off)
	return n, f.wrap("write", err)
}

// readFull reads until p is full, the file ends or the system fails.
func readFull(h handle, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	done := 0
	for done < len(p) {
		n, err := readOnce(h, p[done:min(len(p), done+maxTransfer)], off+int64(done))
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.EOF
		}
		done += n
	}
	return done, nil
}

// writeFull writes until all is written or the system fails. The system may
// stop short without an error (a full disk, a limit, a signal); the next
// attempt then names the reason.
func writeFull(h handle, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	done := 0
	for done < len(p) {
		n, err := writeOnce(h, p[done:min(len(p), done+maxTransfer)], off+int64(done))
		if err != nil {
			return done, err
		}
		if n <= 0 {
			return done, io.ErrShortWrite
		}
		done += n
	}
	return done, nil
}

// maxTransfer is the largest stretch given to the system in one call: some
// refuse more than 2 GiB - 1 byte, and all of them accept this.
const maxTransfer = 1 << 30

// Allocate implements File.
func (f *osFile) Allocate(off, n int64) error {
	return f.stretch("allocate", off, n, allocate)
}

// Punch implements File.
func (f *osFile) Punch(off, n int64) error {
	return f.stretch("punch", off, n, punch)
}

// stretch runs a system function over [off, off+n) of the file.
func (f *osFile) stretch(op string, off, n int64, with func(h handle, off, n int64) error) error {
	if off < 0 || n < 0 || off+n < off {
		return f.wrap(op, fs.ErrInvalid)
	}
	if err := f.begin(); err != nil {
		return f.wrap(op, err)
	}
	defer f.mu.RUnlock()
	if n == 0 {
		return nil
	}
	return f.wrap(op, with(f.sys, off, n))
}

// extendWithZeros is Allocate where the system cannot reserve: it writes zeros
// from the end of the file on, so that no byte that exists is touched. Holes
// below the end stay holes.
func extendWithZeros(h handle, end int64) error {
	info, err := statHandle(h)
	if err != nil {
		return err
	}
	var zeros [64 << 10]byte
	for at := info.Size; at < end; {
		n, err := writeFull(h, zeros[:min(int64(len(zeros)), end-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// Truncate implements File.
func (f *osFile) Truncate(size int64) error {
	if size < 0 {
		return f.wrap("truncate", fs.ErrInvalid)
	}
	if err := f.begin(); err != nil {
		return f.wrap("truncate", err)
	}
	defer f.mu.RUnlock()
	return f.wrap("truncate", truncate(f.sys, size))
}

// Sync implements File.
func (f *osFile) Sync() error {
	if err := f.begin(); err != nil {
		return f.wrap("sync", err)
	}
	defer f.mu.RUnlock()
	return f.wrap("sync", syncFile(f.sys))
}

// Stat implements File.
func (f *osFile) Stat() (Info, error) {
	if err := f.begin(); err != nil {
		return Info{}, f.wrap("stat", err)
	}
	defer f.mu.RUnlock()
	info, err := statHandle(f.sys)
	return info, f.wrap("stat", err)
}

// Named implements File.
func (f *osFile) Named() (size int64, named bool, err error) {
	if err := f.begin(); err != nil {
		return 0, false, f.wrap("stat", err)
	}
	defer f.mu.RUnlock()
	size, named, err = namedIs(f.dir.sys, f.name.Load().sys, f.id)
	return size, named, f.wrap("stat", err)
}

// Lock implements File. Locking what this very file has locked already is
// nothing new and succeeds.
func (f *osFile) Lock() error {
	if err := f.begin(); err != nil {
		return f.wrap("lock", err)
	}
	defer f.mu.RUnlock()
	f.lockMu.Lock()
	defer f.lockMu.Unlock()
	if f.locked {
		return nil
	}
	if err := lockHandle(f.sys); err != nil {
		return f.wrap("lock", err)
	}
	f.locked = true
	return nil
}

// Close implements File. It waits for calls that are running. The lock is
// dropped by name, not by closing alone: a child that was forked a moment ago
// and has not reached its exec yet still shares the handle.
func (f *osFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.wrap("close", fs.ErrClosed)
	}
	f.closed = true
	var unlocked error
	if f.locked {
		unlocked = unlockHandle(f.sys)
	}
	return f.wrap("close", errors.Join(unlocked, closeHandle(f.sys), f.dir.release()))
}
