package securedir

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// secretMemory maps pages of their own and locks them into memory where the
// limits allow. Windows has no way to keep them out of a dump.
func secretMemory(n int) ([]byte, func()) {
	at, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_COMMIT|windows.MEM_RESERVE, windows.PAGE_READWRITE)
	if err != nil {
		return make([]byte, n), func() {}
	}
	_ = windows.VirtualLock(at, uintptr(n)) // the quota may refuse; the secret stays usable
	b := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n)
	return b, func() { _ = windows.VirtualFree(at, 0, windows.MEM_RELEASE) } // cleared by the caller before
}
