//go:build linux || darwin

package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// handle is a file descriptor.
type handle = int

// sysName is a name as the system takes it, ending in a NUL byte.
type sysName []byte

func encodeName(name string) (sysName, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return append([]byte(name), 0), nil
}

func (n sysName) String() string { return string(n[:len(n)-1]) }

// identity tells files apart. It is unique as long as a descriptor is open.
type identity struct{ dev, ino uint64 }

// retry repeats a call that a signal interrupted before it did anything. Sync
// and close are not such calls and never come here.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func openDirectory(path string) (fd handle, err error) {
	err = retry(func() error {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// openFlags go with every open of a file. O_NONBLOCK keeps the open of a FIFO
// from waiting for its other end and means nothing for a regular file.
const openFlags = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

// openRegular asks by name before it opens, because merely opening a device
// can do something; the caller asks again through the descriptor.
func openRegular(dir handle, name sysName, access Access) (handle, error) {
	st, err := statName(dir, name)
	if err != nil {
		return -1, err
	}
	if err := checkRegular(st.mode); err != nil {
		return -1, err
	}
	flags := unix.O_RDONLY
	if access == ReadWrite {
		flags = unix.O_RDWR
	}
	fd, err := openAt(dir, name, flags|openFlags, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) {
		err = notRegular("symbolic link")
	}
	return fd, err
}

func createRegular(dir handle, name sysName) (handle, error) {
	return openAt(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|openFlags, 0o600)
}

func openAt(dir handle, name sysName, flags int, mode uint32) (fd handle, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, name.String(), flags, mode)
		return err
	})
	return fd, err
}

// regularIdentity refuses everything but a regular file.
func regularIdentity(fd handle) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return identity{}, err
	}
	if err := checkRegular(uint32(st.Mode)); err != nil {
		return identity{}, err
	}
	return identity{dev: uint64(st.Dev), ino: st.Ino}, nil
}

// directoryIdentity tells one directory from another.
func directoryIdentity(fd handle) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return identity{}, err
	}
	return identity{dev: uint64(st.Dev), ino: st.Ino}, nil
}

// checkRegular names what the mode says instead of "regular file".
func checkRegular(mode uint32) error {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		return notRegular("directory")
	case unix.S_IFLNK:
		return notRegular("symbolic link")
	case unix.S_IFIFO:
		return notRegular("FIFO")
	case unix.S_IFSOCK:
		return notRegular("socket")
	case unix.S_IFCHR, unix.S_IFBLK:
		return notRegular("device")
	}
	return notRegular("unknown kind of file")
}

// nameStat is what Named and Open need to know of a name.
type nameStat struct {
	id   identity
	mode uint32
	size int64
}

// namedIs reports whether the name leads to the file with this identity, and
// its size.
func namedIs(dir handle, name sysName, id identity) (size int64, same bool, err error) {
	st, err := statName(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	return st.size, err == nil && st.id == id, err
}

func readOnce(fd handle, p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(fd, p, off)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func writeOnce(fd handle, p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pwrite(fd, p, off)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func truncate(fd handle, size int64) error {
	return retry(func() error { return unix.Ftruncate(fd, size) })
}

func replaceAt(dir, _ handle, from, to sysName) error {
	return unix.Renameat(dir, from.String(), dir, to.String())
}

// linkAt is publication where the system has no rename that refuses to
// replace. The name appears in one step; a crash in between leaves the old
// name beside it, leading to the same file.
func linkAt(dir handle, from, to sysName) error {
	if err := unix.Linkat(dir, from.String(), dir, to.String(), 0); err != nil {
		return err
	}
	if err := removeAt(dir, from); err != nil {
		return errors.Join(err, removeAt(dir, to))
	}
	return nil
}

func removeAt(dir handle, name sysName) error {
	return unix.Unlinkat(dir, name.String(), 0)
}

// namesIn lists through a descriptor of its own, whose position nobody shares.
func namesIn(dir handle, path string) ([]string, error) {
	fd, err := openAt(dir, sysName(".\x00"), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	list := os.NewFile(uintptr(fd), path)
	names, err := list.Readdirnames(-1)
	return names, errors.Join(err, list.Close())
}

// closeHandle is called once. Whatever close reports, EINTR included, the
// descriptor is gone, and trying again could close somebody else's.
func closeHandle(fd handle) error { return unix.Close(fd) }

// isNoSpace reports whether a system error means that space, quota or the file
// size limit is exhausted.
func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
