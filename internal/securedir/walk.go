package securedir

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// Options say how a directory is bound. The zero value refuses to create and
// refuses every file system that is not known to be local.
type Options struct {
	Create        bool      // make what is missing of the path, privately
	AnyFileSystem bool      // also where locks and syncs may mean little
	Random        io.Reader // names of what is being created
}

// Open walks an absolute path from the root and binds its last component. Each
// parent and child pair is judged before the walk descends and before anything
// is created below it, so an unsafe ancestor changes nothing. An existing leaf
// must be the user's own and exactly 0700 already.
func Open(ctx context.Context, sys System, p string, o Options) (*Dir, error) {
	root, parts, err := sys.Split(p)
	if err != nil {
		return nil, err
	}
	w := &walker{sys: sys, uid: sys.UID(), opts: o}
	defer w.close()
	if err := w.start(root); err != nil {
		return nil, err
	}
	for _, name := range parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := w.descend(name); err != nil {
			return nil, err
		}
	}
	return w.bind(p)
}

// walker is one walk. Invariant: at is the object the path walked so far names,
// every pair above it has been judged.
type walker struct {
	sys    System
	uid    uint32
	opts   Options
	at     FD
	atStat Stat
	open   []FD
}

func (w *walker) close() {
	for _, fd := range w.open {
		_ = w.sys.Close(fd) // opened for walking only: nothing to lose
	}
}

func (w *walker) hold(fd FD) FD {
	w.open = append(w.open, fd)
	return fd
}

func (w *walker) start(root string) error {
	fd, err := w.sys.Root(root)
	if err != nil {
		return err
	}
	w.at = w.hold(fd)
	w.atStat, err = w.sys.Stat(fd)
	return err
}

// descend moves to a child, creating it if it is missing and that is wanted.
func (w *walker) descend(name string) error {
	if err := judgeAncestor(w.atStat, w.uid); err != nil {
		return err
	}
	child, err := w.sys.Walk(w.at, name)
	if errors.Is(err, fs.ErrNotExist) && w.opts.Create {
		if err := w.create(name); err != nil {
			return err
		}
		child, err = w.sys.Walk(w.at, name)
	}
	if err != nil {
		return err
	}
	w.hold(child)
	st, err := w.sys.Stat(child)
	if err != nil {
		return err
	}
	if err := judgeStep(w.atStat, st, w.uid); err != nil {
		return err
	}
	w.at, w.atStat = child, st
	return nil
}

// create makes a private directory and only then gives it its name, so that no
// one ever sees it with the mode an umask left behind, whenever this is killed.
// Losing the race for the name to another first open is fine.
func (w *walker) create(name string) error {
	temp, err := randomName(w.opts.Random)
	if err != nil {
		return err
	}
	temp = "." + temp
	if err := w.sys.Mkdir(w.at, temp); err != nil {
		return err
	}
	err = w.publish(temp, name)
	if err != nil {
		_ = w.sys.Rmdir(w.at, temp) // best effort: it is empty and private
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (w *walker) publish(temp, name string) error {
	fd, err := w.sys.Walk(w.at, temp)
	if err != nil {
		return err
	}
	w.hold(fd)
	st, err := w.sys.Stat(fd)
	if err != nil {
		return err
	}
	if st.Kind != Directory || st.UID != w.uid {
		return ErrUnsafe
	}
	if err := w.sys.Chmod(fd, dirMode); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return w.sync(fd) },
		func() error { return w.sys.Rename(w.at, temp, name, NoReplace) },
		func() error { return w.sync(w.at) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) sync(dir FD) error {
	fd, err := w.sys.Reopen(dir)
	if err != nil {
		return err
	}
	w.hold(fd)
	return w.sys.Sync(fd)
}

// bind judges the leaf, opens it for good, and proves that what was opened is
// what the walk ended at.
func (w *walker) bind(path string) (*Dir, error) {
	if err := judgeLeaf(w.atStat, w.uid); err != nil {
		return nil, err
	}
	fd, err := w.sys.Reopen(w.at)
	if err != nil {
		return nil, err
	}
	d := &Dir{sys: w.sys, fd: fd, uid: w.uid}
	err = w.sys.Bound(fd, path)
	if err == nil {
		err = d.confirm(w.atStat, w.opts)
	}
	if err != nil {
		_ = w.sys.Close(fd) // nothing was done through it
		return nil, err
	}
	return d, nil
}

func (d *Dir) confirm(walked Stat, o Options) error {
	st, err := d.sys.Stat(d.fd)
	if err != nil {
		return err
	}
	if !st.Same(walked) {
		return ErrChanged
	}
	if err := judgeLeaf(st, d.uid); err != nil {
		return err
	}
	d.stat = st
	if o.AnyFileSystem {
		return nil
	}
	kind, err := d.sys.FileSystem(d.fd)
	if err != nil {
		return err
	}
	return judgeFileSystem(kind)
}
