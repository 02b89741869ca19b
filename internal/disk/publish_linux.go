package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// publishAt renames without replacing. File systems that do not know the flag
// say EINVAL, kernels before 3.15 ENOSYS.
func publishAt(dir, _ handle, from, to sysName) error {
	err := unix.Renameat2(dir, from.String(), dir, to.String(), unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return linkAt(dir, from, to)
	}
	return err
}
