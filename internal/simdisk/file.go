package simdisk

import (
	"io"
	"io/fs"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// file is a handle of a file.
type file struct {
	fs     *FS
	life   uint64
	node   *inode
	access disk.Access
	name   string // guarded by fs.mu: the name Named asks for
	closed bool   // guarded by fs.mu
}

var _ disk.File = (*file)(nil)

// check says whether the handle still works. The lock is held.
func (f *file) check() error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case f.life != f.fs.life:
		return ErrKilled
	}
	return nil
}

func (f *file) named() string {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.name
}

// run performs an operation that changes something: crash point, checks, then
// do with the lock held and the fault that strikes, if any.
func (f *file) run(op Op, do func(*Fault) error) error {
	op.Name = f.named()
	op = f.fs.start(op)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(); err != nil {
		return f.fs.finish(op, err)
	}
	if op.Off < 0 || op.Len < 0 || op.Off+op.Len < op.Off {
		return f.fs.finish(op, fs.ErrInvalid)
	}
	if f.access != disk.ReadWrite {
		return f.fs.finish(op, fs.ErrPermission)
	}
	return f.fs.finish(op, do(f.fs.strike(op)))
}

// ReadAt implements disk.File.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(); err != nil {
		return 0, wrap("read", f.name, err)
	}
	if off < 0 {
		return 0, wrap("read", f.name, fs.ErrInvalid)
	}
	if err := f.fs.strike(Op{Kind: OpRead, Name: f.name}).err(); err != nil {
		return 0, wrap("read", f.name, err)
	}
	n := f.node.read(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements disk.File.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	op := Op{Kind: OpWrite, Off: off, Len: int64(len(p))}
	err = f.run(op, func(fault *Fault) error {
		fits, err := f.fs.room(f.node, off, len(p))
		if fault != nil {
			fits, err = min(fits, fault.Part), fault.err()
		}
		n = fits
		if n > 0 {
			f.fs.write(f.node, p[:n], off)
		}
		return err
	})
	return n, err
}

// Allocate implements disk.File.
func (f *file) Allocate(off, n int64) error {
	return f.run(Op{Kind: OpAllocate, Off: off, Len: n}, func(fault *Fault) error {
		if fault != nil {
			return fault.err()
		}
		return f.fs.allocate(f.node, off, n)
	})
}

// Punch implements disk.File.
func (f *file) Punch(off, n int64) error {
	return f.run(Op{Kind: OpPunch, Off: off, Len: n}, func(fault *Fault) error {
		if fault != nil {
			return fault.err()
		}
		if f.fs.NoPunch {
			return disk.ErrNoPunch
		}
		f.fs.erase(f.node, off, min(off+n, f.node.size), false)
		return nil
	})
}

// Truncate implements disk.File.
func (f *file) Truncate(size int64) error {
	return f.run(Op{Kind: OpTruncate, Len: size}, func(fault *Fault) error {
		if fault != nil {
			return fault.err()
		}
		seq := f.fs.erase(f.node, size, f.node.size, true)
		f.node.resize(seq, size)
		return nil
	})
}

// Sync implements disk.File.
func (f *file) Sync() error {
	op := f.fs.start(Op{Kind: OpSync, Name: f.named()})
	f.fs.mu.Lock()
	upTo, err := f.fs.seq, f.check()
	f.fs.mu.Unlock()
	if err == nil {
		f.fs.inside(op)
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return f.fs.finish(op, err)
	}
	if err := f.fs.strike(op).err(); err != nil {
		f.node.abandon(upTo)
		return f.fs.finish(op, err)
	}
	f.fs.journaled = max(f.fs.journaled, f.node.settle(&f.fs.arena, upTo))
	return nil
}

// Stat implements disk.File.
func (f *file) Stat() (disk.Info, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(); err != nil {
		return disk.Info{}, wrap("stat", f.name, err)
	}
	return disk.Info{Size: f.node.size, Links: uint64(f.node.links)}, nil
}

// Named implements disk.File.
func (f *file) Named() (size int64, named bool, err error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(); err != nil {
		return 0, false, wrap("stat", f.name, err)
	}
	return f.node.size, f.fs.lookup(f.name) == f.node, nil
}

// Lock implements disk.File.
func (f *file) Lock() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(); err != nil {
		return wrap("lock", f.name, err)
	}
	if f.access != disk.ReadWrite {
		return wrap("lock", f.name, fs.ErrPermission)
	}
	if f.node.locked != nil && f.node.locked != f {
		return wrap("lock", f.name, disk.ErrLocked)
	}
	f.node.locked = f
	return nil
}

// Close implements disk.File.
func (f *file) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.check(); err != nil {
		return wrap("close", f.name, err)
	}
	f.closed = true
	if f.node.locked == f {
		f.node.locked = nil
	}
	return nil
}
