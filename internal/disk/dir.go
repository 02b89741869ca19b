//go:build linux || darwin || windows

package disk

import (
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// osDir is a directory of the operating system.
type osDir struct {
	path string // for messages only: every call goes through the handle
	h    *dirHandle

	mu     sync.RWMutex // held shared by every call, exclusively by Close
	closed bool         // guarded by mu
}

// dirHandle is a directory's handle. The osDir and every file opened through
// it share it, because File.Named asks relative to it even after Dir.Close;
// the last user closes it.
type dirHandle struct {
	sys   handle
	users atomic.Int64
}

func (d *dirHandle) retain() { d.users.Add(1) }

func (d *dirHandle) release() error {
	if d.users.Add(-1) > 0 {
		return nil
	}
	return closeHandle(d.sys)
}

// OpenDir opens a directory of the operating system. The path itself may lead
// through symbolic links; nothing inside the directory does. The directory
// stays the same one however the path is renamed afterwards.
func OpenDir(path string) (Dir, error) {
	sys, err := openDirectory(path)
	if err != nil {
		return nil, wrap("open", path, err)
	}
	d := &osDir{path: path, h: &dirHandle{sys: sys}}
	d.h.retain()
	return d, nil
}

// begin admits one call, which must end with d.mu.RUnlock.
func (d *osDir) begin() error {
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return fs.ErrClosed
	}
	return nil
}

func (d *osDir) join(name string) string { return filepath.Join(d.path, name) }

// Open implements Dir.
func (d *osDir) Open(name string, access Access) (File, error) {
	f, err := d.openFile(name, func(n sysName) (handle, error) {
		return openRegular(d.h.sys, n, access)
	})
	if err != nil {
		return nil, wrap("open", d.join(name), err)
	}
	return f, nil
}

// Create implements Dir.
func (d *osDir) Create(name string) (File, error) {
	f, err := d.openFile(name, func(n sysName) (handle, error) {
		return createRegular(d.h.sys, n)
	})
	if err != nil {
		return nil, wrap("create", d.join(name), err)
	}
	return f, nil
}

// openFile encodes the name, lets open get a handle, checks through the handle
// that it is a regular file, and remembers which one.
func (d *osDir) openFile(name string, open func(sysName) (handle, error)) (*osFile, error) {
	n, err := encodeName(name)
	if err != nil {
		return nil, err
	}
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.mu.RUnlock()
	sys, err := open(n)
	if err != nil {
		return nil, err
	}
	id, err := regularIdentity(sys)
	if err != nil {
		_ = closeHandle(sys) // the first error says more
		return nil, err
	}
	d.h.retain()
	f := &osFile{sys: sys, id: id, dir: d.h, dirPath: d.path}
	f.name.Store(&entry{text: name, sys: n})
	return f, nil
}

// Publish implements Dir.
func (d *osDir) Publish(f File, name string) error {
	return wrap("publish", d.join(name), d.rename(f, name, publishAt))
}

// Replace implements Dir.
func (d *osDir) Replace(f File, name string) error {
	return wrap("replace", d.join(name), d.rename(f, name, replaceAt))
}

// rename gives f a new name by means of one system function and, when that
// worked, lets f know it.
func (d *osDir) rename(f File, name string, with func(dir, file handle, from, to sysName) error) error {
	to, err := encodeName(name)
	if err != nil {
		return err
	}
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.RUnlock()
	of, ok := f.(*osFile)
	if !ok || of.dir != d.h {
		return fs.ErrInvalid
	}
	if err := of.begin(); err != nil {
		return err
	}
	defer of.mu.RUnlock()
	from := of.name.Load()
	if same, err := namedIs(d.h.sys, from.sys, of.id); err != nil {
		return err
	} else if !same {
		return fs.ErrNotExist // the old name leads to some other file by now
	}
	if err := with(d.h.sys, of.sys, from.sys, to); err != nil {
		return err
	}
	of.name.Store(&entry{text: name, sys: to})
	return nil
}

// Remove implements Dir.
func (d *osDir) Remove(name string) error {
	return wrap("remove", d.join(name), d.remove(name))
}

func (d *osDir) remove(name string) error {
	n, err := encodeName(name)
	if err != nil {
		return err
	}
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.RUnlock()
	return removeAt(d.h.sys, n)
}

// Names implements Dir.
func (d *osDir) Names() ([]string, error) {
	if err := d.begin(); err != nil {
		return nil, wrap("list", d.path, err)
	}
	defer d.mu.RUnlock()
	names, err := namesIn(d.h.sys, d.path)
	return names, wrap("list", d.path, err)
}

// Sync implements Dir.
func (d *osDir) Sync() error {
	if err := d.begin(); err != nil {
		return wrap("sync", d.path, err)
	}
	defer d.mu.RUnlock()
	return wrap("sync", d.path, syncDirectory(d.h.sys))
}

// FileSystem implements Dir.
func (d *osDir) FileSystem() (FileSystem, error) {
	if err := d.begin(); err != nil {
		return FileSystem{}, wrap("statfs", d.path, err)
	}
	defer d.mu.RUnlock()
	where, err := fileSystemOf(d.h.sys)
	return where, wrap("statfs", d.path, err)
}

// Close implements Dir. It waits for calls that are running. The system's
// handle goes away with the last open file.
func (d *osDir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return wrap("close", d.path, fs.ErrClosed)
	}
	d.closed = true
	return wrap("close", d.path, d.h.release())
}
