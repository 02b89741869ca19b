package simdisk

import (
	"io/fs"
	"slices"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// dir is a handle of the directory.
type dir struct {
	fs     *FS
	life   uint64 // the FS's when it was opened
	closed bool   // guarded by fs.mu
}

var _ disk.Dir = (*dir)(nil)

// check says whether the handle still works. The lock is held.
func (d *dir) check() error {
	switch {
	case d.closed:
		return fs.ErrClosed
	case d.life != d.fs.life:
		return ErrKilled
	}
	return nil
}

// run performs an operation that changes something: crash point, checks, fault,
// then do with the lock held.
func (d *dir) run(op Op, do func() error) error {
	op = d.fs.start(op)
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if err := d.check(); err != nil {
		return d.fs.finish(op, err)
	}
	if err := d.fs.strike(op).err(); err != nil {
		return d.fs.finish(op, err)
	}
	return d.fs.finish(op, do())
}

// Open implements disk.Dir.
func (d *dir) Open(name string, access disk.Access) (disk.File, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, wrap("open", name, err)
	}
	if err := disk.CheckName(name); err != nil {
		return nil, wrap("open", name, err)
	}
	n := d.fs.lookup(name)
	if n == nil {
		return nil, wrap("open", name, fs.ErrNotExist)
	}
	return d.open(n, name, access), nil
}

func (d *dir) open(n *inode, name string, access disk.Access) *file {
	return &file{fs: d.fs, life: d.life, node: n, name: name, access: access}
}

// Create implements disk.Dir.
func (d *dir) Create(name string) (disk.File, error) {
	var f *file
	err := d.run(Op{Kind: OpCreate, Name: name}, func() error {
		if err := d.free(name); err != nil {
			return err
		}
		n := d.fs.newNode()
		d.fs.rebind(d.fs.next(), name, n)
		f = d.open(n, name, disk.ReadWrite)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// free says why a name cannot be given to a file, or nil.
func (d *dir) free(name string) error {
	if err := disk.CheckName(name); err != nil {
		return err
	}
	if d.fs.lookup(name) != nil {
		return fs.ErrExist
	}
	return nil
}

// Publish implements disk.Dir.
func (d *dir) Publish(f disk.File, name string) error {
	return d.rename(OpPublish, f, name)
}

// Replace implements disk.Dir.
func (d *dir) Replace(f disk.File, name string) error {
	return d.rename(OpReplace, f, name)
}

func (d *dir) rename(kind Kind, f disk.File, name string) error {
	sf, ok := f.(*file)
	if !ok || sf.fs != d.fs {
		return wrap(kind.String(), name, fs.ErrInvalid)
	}
	return d.run(Op{Kind: kind, Name: name, From: sf.named()}, func() error {
		if err := sf.check(); err != nil {
			return err
		}
		if err := d.free(name); err != nil && (err != fs.ErrExist || kind == OpPublish) {
			return err
		}
		if d.fs.lookup(sf.name) != sf.node {
			return fs.ErrNotExist
		}
		if name == sf.name {
			return nil
		}
		seq := d.fs.next()
		d.fs.rebind(seq, name, sf.node)
		d.fs.rebind(seq, sf.name, nil)
		sf.name = name
		return nil
	})
}

// Remove implements disk.Dir.
func (d *dir) Remove(name string) error {
	return d.run(Op{Kind: OpRemove, Name: name}, func() error {
		if err := disk.CheckName(name); err != nil {
			return err
		}
		if d.fs.lookup(name) == nil {
			return fs.ErrNotExist
		}
		d.fs.rebind(d.fs.next(), name, nil)
		return nil
	})
}

// Names implements disk.Dir.
func (d *dir) Names() ([]string, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, wrap("list", "", err)
	}
	names := make([]string, 0, len(d.fs.names))
	for _, b := range d.fs.names {
		names = append(names, b.name)
	}
	return slices.Clip(names), nil
}

// Sync implements disk.Dir.
func (d *dir) Sync() error {
	op := d.fs.start(Op{Kind: OpSyncDir})
	d.fs.mu.Lock()
	upTo, err := d.fs.seq, d.check()
	d.fs.mu.Unlock()
	if err == nil {
		d.fs.inside(op)
	}
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if err == nil {
		err = d.check()
	}
	if err == nil {
		err = d.fs.strike(op).err()
	}
	if err == nil {
		d.fs.settleNames(upTo)
	}
	return d.fs.finish(op, err)
}

// FileSystem implements disk.Dir.
func (d *dir) FileSystem() (disk.FileSystem, error) {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if err := d.check(); err != nil {
		return disk.FileSystem{}, wrap("statfs", "", err)
	}
	where := d.fs.Where
	if where.Name == "" {
		where.Name = "simdisk"
	}
	return where, nil
}

// Close implements disk.Dir.
func (d *dir) Close() error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	if err := d.check(); err != nil {
		return wrap("close", "", err)
	}
	d.closed = true
	return nil
}
