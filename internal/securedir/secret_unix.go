//go:build linux || darwin

package securedir

import "golang.org/x/sys/unix"

// secretMemory maps pages of their own: locked into memory where the limits
// allow, and left out of core dumps where the system can.
func secretMemory(n int) ([]byte, func()) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return make([]byte, n), func() {}
	}
	_ = unix.Mlock(b) // RLIMIT_MEMLOCK may refuse; the secret stays usable
	withhold(b)
	return b, func() { _ = unix.Munmap(b) } // cleared by the caller before
}
