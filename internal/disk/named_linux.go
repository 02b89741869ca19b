package disk

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// statName asks the directory about a name without following it. It calls the
// system directly with the name as it stands: the wrapper in x/sys copies it
// to the heap, and this runs before every acknowledgement.
func statName(dir handle, name sysName) (nameStat, error) {
	var st unix.Statx_t
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
			flags, unix.STATX_TYPE|unix.STATX_INO, uintptr(unsafe.Pointer(&st)), 0)
		switch errno {
		case 0:
			id := identity{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino}
			return nameStat{id: id, mode: uint32(st.Mode)}, nil
		case unix.EINTR:
			continue
		case unix.ENOSYS: // before Linux 4.11
			return oldStatName(dir, name)
		}
		return nameStat{}, errno
	}
}

func oldStatName(dir handle, name sysName) (nameStat, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name.String(), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nameStat{}, err
	}
	return nameStat{id: identity{dev: uint64(st.Dev), ino: st.Ino}, mode: st.Mode}, nil
}
