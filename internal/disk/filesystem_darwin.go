package disk

import (
	"strings"

	"golang.org/x/sys/unix"
)

// fileSystemOf goes by the kernel's own word for local, and by name for FUSE,
// which may claim to be. APFS copies metadata on write but overwrites data in
// place, so that writing zeros ahead is worth it there.
func fileSystemOf(fd handle) (FileSystem, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return FileSystem{}, err
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	isLocal := st.Flags&unix.MNT_LOCAL != 0 && !strings.Contains(name, "fuse")
	return FileSystem{Name: name, Network: !isLocal, CopyOnWrite: name == "zfs"}, nil
}
