package securedir

import "golang.org/x/sys/unix"

func withhold(b []byte) {
	_ = unix.Madvise(b, unix.MADV_DONTDUMP) // old kernels: as dumpable as any memory
	_ = unix.Madvise(b, unix.MADV_WIPEONFORK)
}
