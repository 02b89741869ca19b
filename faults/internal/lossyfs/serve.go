package lossyfs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// world is what all nodes share, under its mutex.
type world struct {
	mu     sync.Mutex
	log    log
	files  int // made so far
	failAt int // syncs until one fails; 0: never
	noRoom int // writes until one finds no room
	short  int // writes until one is short
	lying  bool
}

// Serve mounts the file system on dir and answers commands from in, a line
// each, until in ends:
//
//	pos                        how many operations there were
//	image CUT SEED MODE DIR    write what a loss then leaves into the folder DIR
//	fail-sync N                the N-th sync from now fails, once
//	no-room N                  the N-th write from now finds no room
//	short N                    the N-th write from now is short
//	lie 1, lie 0               syncs say nil and do nothing, or not
//
// The first line it says is "ready".
func Serve(dir string, in io.Reader, out io.Writer) error {
	w := &world{}
	root := &folder{world: w}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "lossy", MaxWrite: 1 << 20},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	for commands := bufio.NewScanner(in); commands.Scan(); {
		answer, err := w.obey(commands.Text())
		if err == nil {
			_, err = fmt.Fprintln(out, answer)
		}
		if err != nil {
			return errors.Join(err, server.Unmount())
		}
	}
	return server.Unmount()
}

func (w *world) obey(command string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var verb, to string
	var n int
	var seed uint64
	var mode Mode
	words, _ := fmt.Sscan(command, &verb, &n, &seed, &mode, &to)
	switch {
	case verb == "pos":
		return fmt.Sprint(len(w.log.ops)), nil
	case verb == "image" && words == 5:
		return "ok", w.log.image(n, seed, mode, to)
	case words < 2:
	case verb == "fail-sync":
		w.failAt = n
		return "ok", nil
	case verb == "no-room":
		w.noRoom = n
		return "ok", nil
	case verb == "short":
		w.short = n
		return "ok", nil
	case verb == "lie":
		w.lying = n == 1
		return "ok", nil
	}
	return "", fmt.Errorf("no command %q", command)
}

// strikes counts a fault down and reports whether it is due.
func strikes(n *int) bool {
	if *n == 0 {
		return false
	}
	*n--
	return *n == 0
}

// sync carries out a sync of kind, which may fail or lie.
func (w *world) sync(o op) syscall.Errno {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strikes(&w.failAt) {
		if o.kind == opSync {
			w.log.note(op{kind: opFailedSync, file: o.file})
		}
		return syscall.EIO
	}
	if !w.lying {
		w.log.note(o)
	}
	return 0
}

// folder is the root.
type folder struct {
	fs.Inode
	world *world
}

var (
	_ fs.NodeCreater  = (*folder)(nil)
	_ fs.NodeRenamer  = (*folder)(nil)
	_ fs.NodeUnlinker = (*folder)(nil)
	_ fs.NodeFsyncer  = (*folder)(nil)
)

func (d *folder) Create(ctx context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	w := d.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files++
	f := &file{world: w, number: w.files}
	w.log.note(op{kind: opName, file: f.number, add: name})
	return d.NewPersistentInode(ctx, f, fs.StableAttr{Mode: syscall.S_IFREG}), nil, fuse.FOPEN_DIRECT_IO, 0
}

func (d *folder) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	const noReplace = 1
	if flags&noReplace != 0 && d.GetChild(newName) != nil {
		return syscall.EEXIST
	}
	child := d.GetChild(name)
	if child == nil || to.EmbeddedInode() != d.EmbeddedInode() {
		return syscall.ENOENT
	}
	f, ok := child.Operations().(*file)
	if !ok {
		return syscall.EINVAL
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	d.world.log.note(op{kind: opName, file: f.number, del: name, add: newName})
	return 0
}

func (d *folder) Unlink(_ context.Context, name string) syscall.Errno {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	d.world.log.note(op{kind: opName, del: name})
	return 0
}

func (d *folder) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return d.world.sync(op{kind: opSyncNames})
}

// file is a regular file; data is what users see of it.
type file struct {
	fs.Inode
	world  *world
	number int
	data   []byte
}

var (
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeSetattrer = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
	_ fs.NodeFsyncer   = (*file)(nil)
	_ fs.NodeAllocater = (*file)(nil)
)

func (f *file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	out.Size, out.Mode, out.Nlink = uint64(len(f.data)), 0o600, 1
	return 0
}

func (f *file) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		f.resize(int64(size))
	}
	return f.Getattr(ctx, h, out)
}

func (f *file) resize(size int64) {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	f.grow(size)
	f.data = f.data[:size]
	f.world.log.note(op{kind: opResize, file: f.number, off: size})
}

func (f *file) grow(size int64) {
	if more := size - int64(len(f.data)); more > 0 {
		f.data = append(f.data, make([]byte, more)...)
	}
}

func (f *file) Read(_ context.Context, _ fs.FileHandle, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f.world.mu.Lock()
	defer f.world.mu.Unlock()
	n := copy(b, f.data[min(off, int64(len(f.data))):])
	return fuse.ReadResultData(b[:n]), 0
}

func (f *file) Write(_ context.Context, _ fs.FileHandle, b []byte, off int64) (uint32, syscall.Errno) {
	w := f.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if strikes(&w.noRoom) {
		return 0, syscall.ENOSPC
	}
	if strikes(&w.short) {
		b = b[:(len(b)+1)/2]
	}
	f.grow(off + int64(len(b)))
	copy(f.data[off:], b)
	w.log.note(op{kind: opWrite, file: f.number, data: append([]byte{}, b...), off: off})
	return uint32(len(b)), 0
}

func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return f.world.sync(op{kind: opSync, file: f.number})
}

// Allocate makes room and, but for the flag that says otherwise, the file
// longer.
func (f *file) Allocate(_ context.Context, _ fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	if mode != 0 {
		return syscall.EOPNOTSUPP
	}
	f.world.mu.Lock()
	grows := off+size > uint64(len(f.data))
	f.world.mu.Unlock()
	if grows {
		f.resize(int64(off + size))
	}
	return 0
}
