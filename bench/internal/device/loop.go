package device

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Loop is a file system of its own in a file, on a loop device.
type Loop struct {
	Dir   string // where it is mounted
	image string
	dev   string
}

// MountLoop makes a file system of the given type ("ext4" with its default
// journal, "xfs") in an image of size bytes below dir and mounts it there. The
// image is written out first, so that its own blocks cost nothing later. The
// error names the tool, right or room that is missing.
func MountLoop(dir, fsType string, size int64) (*Loop, error) {
	mkfs := map[string][]string{
		"ext4": {"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"},
		"xfs":  {"mkfs.xfs", "-q", "-f"},
	}[fsType]
	if mkfs == nil {
		return nil, fmt.Errorf("loop %s: unknown file system", fsType)
	}
	if err := loopsPossible(dir, mkfs[0], size); err != nil {
		return nil, fmt.Errorf("loop %s: %w", fsType, err)
	}
	l := &Loop{Dir: filepath.Join(dir, fsType), image: filepath.Join(dir, fsType+".img")}
	if err := l.mount(mkfs, fsType, size); err != nil {
		return nil, errors.Join(fmt.Errorf("loop %s: %w", fsType, err), l.Close())
	}
	return l, nil
}

// loopsPossible says what is missing before anything is written.
func loopsPossible(dir, mkfs string, size int64) error {
	if os.Geteuid() != 0 {
		return errors.New("needs root")
	}
	for _, tool := range []string{mkfs, "losetup"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("no %s on this machine", tool)
		}
	}
	var free unix.Statfs_t
	if err := unix.Statfs(dir, &free); err != nil {
		return err
	}
	if room := int64(free.Bavail) * free.Bsize; room < 2*size {
		return fmt.Errorf("%d MiB free, needs %d", room>>20, 2*size>>20)
	}
	return nil
}

func (l *Loop) mount(mkfs []string, fsType string, size int64) error {
	if err := writeImage(l.image, size); err != nil {
		return err
	}
	if _, err := command(append(mkfs, l.image)...); err != nil {
		return err
	}
	dev, err := command("losetup", "--find", "--show", "--direct-io=on", l.image)
	if err != nil {
		return err
	}
	l.dev = strings.TrimSpace(dev)
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return err
	}
	return unix.Mount(l.dev, l.Dir, fsType, 0, "")
}

// writeImage makes a file of size zero bytes, all of them on the disk.
func writeImage(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	zeros := make([]byte, 1<<20)
	for written := int64(0); written < size; written += int64(len(zeros)) {
		if _, err := f.Write(zeros); err != nil {
			return err
		}
	}
	return f.Sync()
}

// Close unmounts the file system and removes its image.
func (l *Loop) Close() error {
	var errs []error
	if err := unix.Unmount(l.Dir, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		errs = append(errs, fmt.Errorf("unmount %s: %w", l.Dir, err))
	}
	if l.dev != "" {
		_, err := command("losetup", "--detach", l.dev)
		errs = append(errs, err)
	}
	for _, name := range []string{l.Dir, l.image} {
		if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// command runs a program and returns what it printed.
func command(args ...string) (string, error) {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
