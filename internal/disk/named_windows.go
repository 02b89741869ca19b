package disk

import (
	"errors"

	"golang.org/x/sys/windows"
)

// namedIs reports whether the name leads to the file with this identity, and
// its size. A reparse point counts as itself and so never matches.
func namedIs(dir handle, name sysName, id identity) (size int64, same bool, err error) {
	h, err := openAt(dir, name, windows.FILE_READ_ATTRIBUTES, windows.FILE_OPEN, 0)
	switch {
	case errors.Is(err, windows.STATUS_OBJECT_NAME_NOT_FOUND), errors.Is(err, windows.STATUS_DELETE_PENDING):
		return 0, false, nil
	case err != nil:
		return 0, false, errno(err)
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(h)) }()
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return 0, false, err
	}
	return int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow), identityOf(&info) == id, nil
}
