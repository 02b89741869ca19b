package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// syncFile asks for F_FULLFSYNC exactly once: fsync on macOS leaves the data in
// the drive's volatile cache. Only a file system that does not know
// F_FULLFSYNC (SMB, some FUSE ones) is left with fsync, which is the most it
// can do. An interrupted call is a failure like any other, see sync_linux.go.
func syncFile(fd handle) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOTTY) {
		return unix.Fsync(fd)
	}
	return err
}

func syncDirectory(fd handle) error { return syncFile(fd) }
