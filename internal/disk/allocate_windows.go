package disk

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

// allocate writes zeros. A file that is not sparse has no holes, so the end is
// all there is to extend.
func allocate(h handle, off, n int64) error { return extendWithZeros(h, off+n) }

// punch makes the file sparse, which on NTFS is for good, and frees the stretch.
func punch(h handle, off, n int64) error {
	stretch := struct{ from, to int64 }{off, off + n} // FILE_ZERO_DATA_INFORMATION
	var got uint32
	err := windows.DeviceIoControl(h, windows.FSCTL_SET_SPARSE, nil, 0, nil, 0, &got, nil)
	if err == nil {
		err = windows.DeviceIoControl(h, windows.FSCTL_SET_ZERO_DATA,
			(*byte)(unsafe.Pointer(&stretch)), uint32(unsafe.Sizeof(stretch)), nil, 0, &got, nil)
	}
	if errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED) {
		return ErrNoPunch
	}
	return err
}
