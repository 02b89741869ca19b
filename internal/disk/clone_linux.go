package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// pair runs do with the descriptors of two files of the operating system.
func pair(op string, dst, src File, do func(dst, src handle) error) error {
	to, okTo := dst.(*osFile)
	from, okFrom := src.(*osFile)
	if !okTo || !okFrom {
		return ErrNoClone
	}
	if err := from.begin(); err != nil {
		return from.wrap(op, err)
	}
	defer from.mu.RUnlock()
	if err := to.begin(); err != nil {
		return to.wrap(op, err)
	}
	defer to.mu.RUnlock()
	err := do(to.sys, from.sys)
	if cannot(err) {
		return fmt.Errorf("%w: %w", ErrNoClone, err)
	}
	return to.wrap(op, err)
}

// cannot reports whether an error means that this cannot be done here, by these
// files, or not now (EAGAIN: the stretch has not reached the disk yet), but may
// well be done with read and write.
func cannot(err error) bool {
	for _, e := range []error{
		unix.EOPNOTSUPP, unix.ENOSYS, unix.EXDEV, unix.EINVAL, unix.ENOTTY, unix.EBADF, unix.EPERM, unix.EAGAIN, unix.ETXTBSY,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func share(dst, src File, off, n int64) error {
	return pair("clone", dst, src, func(dst, src handle) error {
		r := unix.FileCloneRange{Src_fd: int64(src), Src_offset: uint64(off), Src_length: uint64(n), Dest_offset: uint64(off)}
		return retry(func() error { return unix.IoctlFileCloneRange(dst, &r) })
	})
}

func transfer(dst, src File, off, n int64) (done int64, err error) {
	err = pair("copy", dst, src, func(dst, src handle) error {
		from, to := off, off
		return retry(func() error {
			got, err := unix.CopyFileRange(src, &from, dst, &to, int(min(n, maxTransfer)), 0)
			done = int64(max(got, 0))
			return err
		})
	})
	return done, err
}

// nextData asks with lseek, whose position nobody here uses.
func nextData(file File, off int64) (from, to int64, err error) {
	f, ok := file.(*osFile)
	if !ok {
		return 0, 0, ErrNoClone
	}
	if err := f.begin(); err != nil {
		return 0, 0, f.wrap("seek", err)
	}
	defer f.mu.RUnlock()
	info, err := statHandle(f.sys)
	if err != nil {
		return 0, 0, f.wrap("stat", err)
	}
	from, err = unix.Seek(f.sys, off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return info.Size, info.Size, nil
	case errors.Is(err, unix.EINVAL):
		return 0, 0, ErrNoClone
	case err != nil:
		return 0, 0, f.wrap("seek", err)
	}
	to, err = unix.Seek(f.sys, from, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) { // it was cut off meanwhile
		return info.Size, info.Size, nil
	}
	return from, to, f.wrap("seek", err)
}
