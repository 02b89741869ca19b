package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// allocate reserves with fallocate, or writes zeros past the end of the file
// where the file system has no such thing.
func allocate(fd handle, off, n int64) error {
	err := retry(func() error { return unix.Fallocate(fd, 0, off, n) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return extendWithZeros(fd, off+n)
	}
	return err
}

// punch frees the blocks inside the stretch and zeros its ragged ends.
func punch(fd handle, off, n int64) error {
	const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	err := retry(func() error { return unix.Fallocate(fd, mode, off, n) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return ErrNoPunch
	}
	return err
}
