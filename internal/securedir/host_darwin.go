package securedir

import (
	"errors"

	"golang.org/x/sys/unix"
)

// This file compiles and follows the documentation; no test has run it on
// macOS.

const (
	walkFlags = unix.O_SEARCH | unix.O_DIRECTORY

	// Open file description locks as the system's own headers number them;
	// x/sys does not name them.
	ofdSetLock = 90
	ofdGetLock = 92
)

func (host) Stat(fd FD) (Stat, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(int(fd), &st) }); err != nil {
		return Stat{}, err
	}
	out := plain(st)
	if out.Kind == Other {
		return out, nil
	}
	list, err := extendedList(fd)
	out.Mode = widened(out.Mode, list)
	return out, err
}

func (h host) StatAt(dir FD, name string) (Stat, error) {
	var st unix.Stat_t
	err := again(func() error { return unix.Fstatat(int(dir), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	out := plain(st)
	if err != nil || out.Kind != Regular || out.Mode != fileMode {
		return out, err // refused without asking for more
	}
	// The list is asked of the object, so it is opened: never a FIFO, which
	// would not open, and never through a link.
	fd, err := h.Open(dir, name, Read)
	if err != nil {
		return Stat{}, err
	}
	list, err := extendedList(fd)
	out.Mode = widened(out.Mode, list)
	return out, errors.Join(err, h.Close(fd))
}

func plain(st unix.Stat_t) Stat {
	return Stat{
		Device: uint64(uint32(st.Dev)),
		Inode:  st.Ino,
		Birth:  st.Btim.Nano(),
		Kind:   kindOf(uint32(st.Mode)),
		Mode:   uint32(st.Mode) & 0o7777,
		UID:    st.Uid,
		Links:  uint64(st.Nlink),
		Size:   st.Size,
	}
}

func (host) FileSystem(fd FD) (FileSystem, error) {
	var st unix.Statfs_t
	err := again(func() error { return unix.Fstatfs(int(fd), &st) })
	if err == nil && st.Flags&unix.MNT_LOCAL == 0 {
		return FileSystem{Name: "network"}, nil
	}
	return FileSystem{Name: unix.ByteSliceToString(st.Fstypename[:])}, err
}

func (host) Chmod(fd FD, mode uint32) error {
	return again(func() error { return unix.Fchmod(int(fd), mode) })
}

// Sync asks the drive too: fsync alone leaves bytes in its cache here.
func (host) Sync(fd FD) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	return err
}

func (h host) DataSync(fd FD) error { return h.Sync(fd) }

func (host) Rename(dir FD, from, to string, how How) error {
	flags := uint32(0)
	if how == NoReplace {
		flags = unix.RENAME_EXCL
	}
	return unix.RenameatxNp(int(dir), from, int(dir), to, flags)
}
