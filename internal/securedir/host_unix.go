//go:build linux || darwin

package securedir

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// host is the operating system. It holds nothing.
type host struct{}

// Host is the operating system's System.
func Host() (System, error) { return host{}, nil }

func (host) UID() uint32 { return uint32(unix.Geteuid()) }

func (host) Split(path string) (root string, parts []string, err error) { return splitPath(path) }

func (host) Bound(FD, string) error { return nil }

func (host) Root(string) (FD, error) { return openat(unix.AT_FDCWD, "/", walkFlags) }

func (host) Walk(dir FD, name string) (FD, error) { return openat(int(dir), name, walkFlags) }

func (host) Reopen(dir FD) (FD, error) {
	return openat(int(dir), ".", unix.O_RDONLY|unix.O_DIRECTORY)
}

func (host) Mkdir(dir FD, name string) error {
	return again(func() error { return unix.Mkdirat(int(dir), name, dirMode) })
}

func (host) Open(dir FD, name string, how How) (FD, error) {
	flags := unix.O_RDONLY
	switch how {
	case ReadWrite:
		flags = unix.O_RDWR
	case Exclusive:
		flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL
	case Read, NoReplace, ReplaceOld:
	}
	return openat(int(dir), name, flags|unix.O_NONBLOCK|unix.O_NOCTTY)
}

// openat never follows the last component and never leaks into a child.
func openat(dir int, name string, flags int) (FD, error) {
	fd := -1
	err := again(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileMode)
		return err
	})
	return FD(fd), err
}

// again continues a call that a signal interrupted before it did anything.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (host) ReadAt(fd FD, p []byte, off int64) (int, error) {
	n := 0
	err := again(func() (err error) { n, err = unix.Pread(int(fd), p, off); return err })
	return max(n, 0), err
}

func (host) WriteAt(fd FD, p []byte, off int64) (int, error) {
	n := 0
	err := again(func() (err error) { n, err = unix.Pwrite(int(fd), p, off); return err })
	return max(n, 0), err
}

func (host) Unlink(dir FD, name string) error {
	return again(func() error { return unix.Unlinkat(int(dir), name, 0) })
}

func (host) Rmdir(dir FD, name string) error {
	return again(func() error { return unix.Unlinkat(int(dir), name, unix.AT_REMOVEDIR) })
}

func (host) Names(dir FD) ([]string, error) {
	if _, err := unix.Seek(int(dir), 0, 0); err != nil {
		return nil, err
	}
	var names []string
	buf := make([]byte, 64<<10)
	for {
		n := 0
		err := again(func() (err error) { n, err = unix.ReadDirent(int(dir), buf); return err })
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

func (host) Flock(fd FD, op Lock) error {
	how := unix.LOCK_EX | unix.LOCK_NB
	switch op {
	case LockShared:
		how = unix.LOCK_SH | unix.LOCK_NB
	case Unlock:
		how = unix.LOCK_UN
	case LockProbe:
		return fs.ErrInvalid // flock cannot ask without taking
	case LockExclusive:
	}
	return locked(again(func() error { return unix.Flock(int(fd), how) }))
}

// locked names contention; both spellings of it occur.
func locked(err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}

func (host) RangeLock(fd FD, off int64, op Lock) error {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: off, Len: 1}
	cmd := ofdSetLock
	switch op {
	case LockShared:
		l.Type = unix.F_RDLCK
	case Unlock:
		l.Type = unix.F_UNLCK
	case LockProbe:
		cmd = ofdGetLock
	case LockExclusive:
	}
	err := locked(again(func() error { return unix.FcntlFlock(uintptr(fd), cmd, &l) }))
	if err == nil && op == LockProbe && l.Type != unix.F_UNLCK {
		return ErrLocked
	}
	return err
}

func (host) Close(fd FD) error { return unix.Close(int(fd)) }

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFREG:
		return Regular
	}
	return Other
}
