//go:build linux || darwin || windows

package disk

import (
	"io/fs"
	"path/filepath"
	"sync"
)

// osDir is a directory of the operating system.
type osDir struct {
	path string // for messages only: every call goes through the handle
	h    *dirHandle

	mu     sync.RWMutex // held shared by every call, exclusively by Close
	closed bool         // guarded by mu
}

// dirHandle is a directory's handle. All the osDirs of one directory in this
// process and all files opened through them share it: a thousand logs in one
// directory cost one descriptor. Files keep it, because File.Named asks relative
// to it even after Dir.Close; the last user closes it.
type dirHandle struct {
	sys   handle
	id    identity
	users int // guarded by handles.mu
}

// handles are the directories that are open, by identity.
var handles = struct {
	mu   sync.Mutex
	byID map[identity]*dirHandle
}{byID: map[identity]*dirHandle{}}

func (d *dirHandle) retain() {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	d.users++
}

func (d *dirHandle) release() error {
	handles.mu.Lock()
	defer handles.mu.Unlock()
	if d.users--; d.users > 0 {
		return nil
	}
	delete(handles.byID, d.id)
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
	h, err := shareHandle(sys)
	if err != nil {
		return nil, wrap("open", path, err)
	}
	return &osDir{path: path, h: h}, nil
}

// shareHandle returns the handle that this process uses for the directory that
// sys leads to: sys itself, or one it has already. It takes over sys, also where
// it fails: a handle is closed once.
func shareHandle(sys handle) (*dirHandle, error) {
	id, err := directoryIdentity(sys)
	if err != nil {
		_ = closeHandle(sys) // the first error says more
		return nil, err
	}
	handles.mu.Lock()
	defer handles.mu.Unlock()
	h := handles.byID[id]
	if h == nil {
		h = &dirHandle{sys: sys, id: id}
		handles.byID[id] = h
	} else if err := closeHandle(sys); err != nil {
		return nil, err
	}
	h.users++
	return h, nil
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
	if _, same, err := namedIs(d.h.sys, from.sys, of.id); err != nil {
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
