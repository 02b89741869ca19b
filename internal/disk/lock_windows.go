package disk

import (
	"errors"

	"golang.org/x/sys/windows"
)

// lockByte is the one byte that is locked. Locks are mandatory on Windows, so
// it lies where no data ever does, and readers read undisturbed.
const lockByte = 1 << 62

func lockHandle(h handle) error {
	where := at(lockByte)
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(h, how, 0, 1, 0, &where)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

func unlockHandle(h handle) error {
	where := at(lockByte)
	return windows.UnlockFileEx(h, 0, 1, 0, &where)
}
