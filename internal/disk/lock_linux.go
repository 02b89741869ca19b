package disk

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// lockHandle takes an open-file-description lock: unlike a POSIX record lock
// it belongs to the descriptor and not to the process, so that closing another
// descriptor of the same file does not drop it; and unlike flock it cannot be
// taken through a descriptor that may only read.
func lockHandle(fd handle) error {
	err := setLock(fd, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}

func unlockHandle(fd handle) error { return setLock(fd, unix.F_UNLCK) }

func setLock(fd handle, kind int16) error {
	whole := unix.Flock_t{Type: kind, Whence: io.SeekStart}
	return retry(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &whole) })
}
