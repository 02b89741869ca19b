package blockdev

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Serve mounts a file system on dir with two files: "disk" is a disk of mb
// megabytes that records, "crash" is what a power cut left. It answers commands
// from in, a line each, until in ends:
//
//	mark                    begin to record
//	pos                     how many records there are
//	image CUT SEED MODE     put this image into "crash"
//	unflushed CUT           which writes a cut may lose
//	fail-write N            the N-th write from now fails
//	fail-flush N            the N-th flush from now fails
//
// The first line it says is "ready".
func Serve(dir string, mb int64, in io.Reader, out io.Writer) error {
	disk := New(mb << 20)
	served, crash := &node{}, &node{}
	served.disk.Store(disk)
	crash.disk.Store(New(mb << 20))
	root := &fs.Inode{}
	always := time.Hour // nothing changes behind the kernel's back
	server, err := fs.Mount(dir, root, &fs.Options{
		EntryTimeout: &always, AttrTimeout: &always,
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "faults", MaxWrite: 1 << 20},
		OnAdd: func(ctx context.Context) {
			for name, n := range map[string]*node{"disk": served, "crash": crash} {
				root.AddChild(name, root.NewPersistentInode(ctx, n, fs.StableAttr{Mode: syscall.S_IFREG}), true)
			}
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	for commands := bufio.NewScanner(in); commands.Scan(); {
		if err := obey(commands.Text(), disk, crash, out); err != nil {
			return errors.Join(err, server.Unmount())
		}
	}
	return server.Unmount()
}

func obey(command string, disk *Disk, crash *node, out io.Writer) error {
	var verb string
	var n int
	var seed uint64
	var mode Mode
	if _, err := fmt.Sscan(command, &verb, &n, &seed, &mode); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && verb == "" {
		return fmt.Errorf("command %q: %w", command, err)
	}
	answer := "ok"
	switch verb {
	case "mark":
		disk.Mark()
	case "pos":
		answer = fmt.Sprint(disk.Position())
	case "image":
		image, err := disk.Image(n, seed, mode)
		if err != nil {
			return err
		}
		crash.disk.Store(image)
	case "unflushed":
		answer = disk.Unflushed(n)
	case "fail-write":
		disk.FailWrite(n)
	case "fail-flush":
		disk.FailFlush(n)
	default:
		return fmt.Errorf("no command %q", command)
	}
	_, err := fmt.Fprintln(out, answer)
	return err
}

// node is a file whose bytes are a disk's.
type node struct {
	fs.Inode
	disk atomic.Pointer[Disk]
}

var (
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeAllocater = (*node)(nil)
)

func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Size, out.Mode, out.Nlink, out.Blksize = uint64(n.disk.Load().Size()), 0o600, 1, pageSize
	return 0
}

func (n *node) Read(_ context.Context, _ fs.FileHandle, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	d := n.disk.Load()
	b = b[:max(0, min(int64(len(b)), d.Size()-off))]
	if _, err := d.ReadAt(b, off); err != nil {
		return nil, fs.ToErrno(err)
	}
	return fuse.ReadResultData(b), 0
}

func (n *node) Write(_ context.Context, _ fs.FileHandle, b []byte, off int64) (uint32, syscall.Errno) {
	written, err := n.disk.Load().WriteAt(b, off)
	if err != nil {
		return 0, fs.ToErrno(err)
	}
	return uint32(written), 0
}

func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	if err := n.disk.Load().Flush(); err != nil {
		return fs.ToErrno(err)
	}
	return 0
}

// Allocate refuses discards and zeroing, so that everything that changes the
// disk is a write.
func (n *node) Allocate(context.Context, fs.FileHandle, uint64, uint64, uint32) syscall.Errno {
	return syscall.EOPNOTSUPP
}
