package securedir

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// walkFlags need search permission only: a root-owned 0711 ancestor is fine.
	walkFlags = unix.O_PATH | unix.O_DIRECTORY

	// Open file description locks: they belong to the descriptor, no close of
	// another one drops them, and no child inherits them across exec.
	ofdSetLock = unix.F_OFD_SETLK
	ofdGetLock = unix.F_OFD_GETLK
)

const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME

func (host) Stat(fd FD) (Stat, error) { return statx(int(fd), "", unix.AT_EMPTY_PATH) }

func (host) StatAt(dir FD, name string) (Stat, error) { return statx(int(dir), name, 0) }

func statx(dir int, name string, flags int) (Stat, error) {
	var st unix.Statx_t
	flags |= unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	err := again(func() error { return unix.Statx(dir, name, flags, statMask, &st) })
	if err != nil {
		return Stat{}, err
	}
	out := Stat{
		Device: unix.Mkdev(st.Dev_major, st.Dev_minor),
		Inode:  st.Ino,
		Kind:   kindOf(uint32(st.Mode)),
		Mode:   uint32(st.Mode) & 0o7777,
		UID:    st.Uid,
		Links:  uint64(st.Nlink),
		Size:   int64(st.Size),
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		out.Birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return out, nil
}

func (host) FileSystem(fd FD) (FileSystem, error) {
	var st unix.Statfs_t
	err := again(func() error { return unix.Fstatfs(int(fd), &st) })
	return FileSystem{Magic: uint32(st.Type)}, err
}

// Chmod works on descriptors opened for walking too, whatever the mode: by
// fchmodat2 where the kernel has it, by the descriptor's own name elsewhere.
func (host) Chmod(fd FD, mode uint32) error {
	err := again(func() error { return unix.Fchmod(int(fd), mode) })
	if errors.Is(err, unix.EBADF) {
		err = unix.Fchmodat(int(fd), "", mode, unix.AT_EMPTY_PATH)
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(int(fd)), mode)
	}
	return err
}

func (host) Sync(fd FD) error { return unix.Fsync(int(fd)) }

func (host) DataSync(fd FD) error { return unix.Fdatasync(int(fd)) }

func (host) Rename(dir FD, from, to string, how How) error {
	flags := uint(0)
	if how == NoReplace {
		flags = unix.RENAME_NOREPLACE
	}
	return unix.Renameat2(int(dir), from, int(dir), to, flags)
}
