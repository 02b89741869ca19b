package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// FileSystem is a kind of file system to make and mount.
type FileSystem struct {
	Name    string // of the layer, in messages
	Type    string // of mount(2)
	Options string // of mount(2)
	MB      int64  // the smallest size that mkfs takes, or a little more
	Make    []string
}

// The file systems that users keep logs on.
var (
	Ext4        = FileSystem{"ext4", "ext4", "", 48, []string{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"}}
	Ext4Journal = FileSystem{"ext4 data=journal", "ext4", "data=journal", 48, Ext4.Make}
	Ext4NoFlush = FileSystem{"ext4 nobarrier", "ext4", "nobarrier", 48, Ext4.Make}
	XFS         = FileSystem{"xfs", "xfs", "", 300, []string{"mkfs.xfs", "-q", "-f"}}
	Btrfs       = FileSystem{"btrfs", "btrfs", "", 128, []string{"mkfs.btrfs", "-q", "-f"}}
)

// Attach puts a loop device over a file. The device goes away with its last
// user, so close the returned file once it is mounted.
func Attach(path string) (*os.File, error) {
	backing, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close() // the device holds it
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close() // nothing was written
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		dev, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd()), Size: 0}
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		err = unix.IoctlLoopConfigure(int(dev.Fd()), &config)
		if err == nil {
			return dev, nil
		}
		if err = errors.Join(err, dev.Close()); !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("configure %s: %w", dev.Name(), err)
		} // somebody else was faster
	}
}

// Format makes the file system on a loop device or file, with further options
// before the name.
func (fs *FileSystem) Format(t testing.TB, path string, more ...string) {
	t.Helper()
	args := append(append(append([]string{}, fs.Make[1:]...), more...), path)
	if out, err := exec.Command(Program(t, fs.Make[0]), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", fs.Make[0], err, out)
	}
}

// Mount mounts what is in a file through a loop device on dir.
func (fs *FileSystem) Mount(path, dir string) error {
	dev, err := Attach(path)
	if err != nil {
		return err
	}
	return errors.Join(fs.MountDevice(dev.Name(), dir), dev.Close())
}

// MountDevice mounts a device on dir.
func (fs *FileSystem) MountDevice(dev, dir string) error {
	if err := unix.Mount(dev, dir, fs.Type, 0, fs.Options); err != nil {
		return fmt.Errorf("mount %s on %s as %s: %w", dev, dir, fs.Name, err)
	}
	return nil
}

// New makes an image of the file system in memory, mounts it and returns the
// folder and the image's path. mkfs gets more before the name.
func (fs *FileSystem) New(t testing.TB, bytes int64, more ...string) (dir, image string) {
	t.Helper()
	Root(t)
	Device(t, "/dev/loop-control")
	base := Scratch(t)
	dir, image = filepath.Join(base, "mnt"), filepath.Join(base, "image")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, bytes); err != nil {
		t.Fatal(err)
	}
	fs.Format(t, image, more...)
	if err := fs.Mount(image, dir); err != nil {
		t.Fatal(err)
	}
	UnmountAfter(t, dir)
	return dir, image
}

// UnmountAfter unmounts dir at the end of the test, if it is still mounted.
func UnmountAfter(t testing.TB, dir string) {
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// Unmount unmounts dir; nothing may be open in it.
func Unmount(t testing.TB, dir string) {
	t.Helper()
	if err := TryUnmount(dir); err != nil {
		t.Fatal(err)
	}
}

// TryUnmount is Unmount with an error. Another test that starts a process at
// the same time holds for a moment, between its fork and its exec, what this
// process had open; so busy means not yet.
func TryUnmount(dir string) error {
	var err error
	for range 200 {
		if err = unix.Unmount(dir, 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}
