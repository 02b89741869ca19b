package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// lockHandle takes a flock: like Linux's open-file-description locks it belongs
// to the descriptor, so that closing another one of the same file does not drop
// it. Unlike them it can be taken through a descriptor that may only read,
// which is why files are made with mode 0600.
func lockHandle(fd handle) error {
	err := retry(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

func unlockHandle(fd handle) error {
	return retry(func() error { return unix.Flock(fd, unix.LOCK_UN) })
}
