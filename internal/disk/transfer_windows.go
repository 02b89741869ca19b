package disk

import (
	"errors"

	"golang.org/x/sys/windows"
)

// at is a position in a file as the system takes it.
func at(off int64) windows.Overlapped {
	return windows.Overlapped{Offset: uint32(off), OffsetHigh: uint32(off >> 32)}
}

// readOnce reads at a position. The system calls the end of the file an error.
func readOnce(h handle, p []byte, off int64) (int, error) {
	var n uint32
	where := at(off)
	err := windows.ReadFile(h, p, &n, &where)
	if errors.Is(err, windows.ERROR_HANDLE_EOF) {
		err = nil
	}
	return int(n), err
}

func writeOnce(h handle, p []byte, off int64) (int, error) {
	var n uint32
	where := at(off)
	err := windows.WriteFile(h, p, &n, &where)
	return int(n), err
}
