package disk

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Both questions below are asked before every acknowledgement, so they ask for
// what is needed and no more. A plain fstat also asks for the times of the
// file; a kernel with multigrain timestamps (Linux 6.13) then gives the next
// write a new time, and the sync after it has the inode to write, too. They
// call the system directly with the name as it stands: the wrapper in x/sys
// copies it to the heap.

// statHandle asks the descriptor about its file.
func statHandle(fd handle) (Info, error) {
	var st unix.Statx_t
	empty := [1]byte{}
	err := statx(fd, &empty[0], unix.AT_EMPTY_PATH, unix.STATX_SIZE|unix.STATX_NLINK, &st)
	if err == unix.ENOSYS { // before Linux 4.11
		var old unix.Stat_t
		if err := unix.Fstat(fd, &old); err != nil {
			return Info{}, err
		}
		return Info{Size: old.Size, Links: uint64(old.Nlink)}, nil
	}
	if err != nil {
		return Info{}, err
	}
	return Info{Size: int64(st.Size), Links: uint64(st.Nlink)}, nil
}

// statName asks the directory about a name without following it.
func statName(dir handle, name sysName) (nameStat, error) {
	var st unix.Statx_t
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	err := statx(dir, &name[0], flags, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_SIZE, &st)
	if err == unix.ENOSYS {
		return oldStatName(dir, name)
	}
	if err != nil {
		return nameStat{}, err
	}
	id := identity{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino}
	return nameStat{id: id, mode: uint32(st.Mode), size: int64(st.Size)}, nil
}

func statx(fd handle, name *byte, flags, mask uintptr, st *unix.Statx_t) error {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(name)),
			flags, mask, uintptr(unsafe.Pointer(st)), 0)
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
			continue
		}
		return errno
	}
}

func oldStatName(dir handle, name sysName) (nameStat, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name.String(), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nameStat{}, err
	}
	return nameStat{id: identity{dev: uint64(st.Dev), ino: st.Ino}, mode: st.Mode, size: st.Size}, nil
}
