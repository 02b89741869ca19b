package securedir

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attrlist is what getattrlist is asked for; the numbers are those of
// <sys/attr.h>, which x/sys does not name.
type attrlist struct {
	count  uint16
	_      uint16
	common uint32
	_      [4]uint32
}

const (
	attrBitMapCount      = 5
	attrExtendedSecurity = 0x00400000
	attrRoom             = 4096 // a list has at most 128 entries of 24 bytes
)

// extendedList is the extended access control list of an open object; nil if it
// has none.
func extendedList(fd FD) ([]byte, error) {
	ask := attrlist{count: attrBitMapCount, common: attrExtendedSecurity}
	room := make([]byte, attrRoom)
	err := again(func() error {
		_, _, e := unix.Syscall6(unix.SYS_FGETATTRLIST, uintptr(fd), uintptr(unsafe.Pointer(&ask)),
			uintptr(unsafe.Pointer(&room[0])), uintptr(len(room)), 0, 0)
		if e != 0 {
			return e
		}
		return nil
	})
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil // the file system has no such lists
	}
	if err != nil {
		return nil, err
	}
	return attribute(room), nil
}
