package disk

import "golang.org/x/sys/unix"

// statName asks the directory about a name without following it. The wrapper
// copies the name to the heap, the one allocation of this seam on macOS: there
// is no supported way around it, since raw system calls are not.
func statName(dir handle, name sysName) (nameStat, error) {
	var st unix.Stat_t
	err := retry(func() error {
		return unix.Fstatat(dir, name.String(), &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		return nameStat{}, err
	}
	return nameStat{id: identity{dev: uint64(st.Dev), ino: st.Ino}, mode: uint32(st.Mode), size: st.Size}, nil
}

func statHandle(fd handle) (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Info{}, err
	}
	return Info{Size: st.Size, Links: uint64(st.Nlink)}, nil
}
