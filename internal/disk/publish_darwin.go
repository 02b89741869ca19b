package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// publishAt renames without replacing, by a link where the file system does
// not know how.
func publishAt(dir, _ handle, from, to sysName) error {
	err := unix.RenameatxNp(dir, from.String(), dir, to.String(), unix.RENAME_EXCL)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) {
		return linkAt(dir, from, to)
	}
	return err
}
