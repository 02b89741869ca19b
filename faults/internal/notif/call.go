package notif

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// call is one caught call of the program.
type call struct {
	*notification
	name  Call
	pidfd int
}

// extent is how much of a call is carried out.
type extent int

const (
	whole extent = iota
	half
)

// setLockCommand is F_OFD_SETLK, the one use of fcntl that is counted.
const setLockCommand = 37

// concerns reports whether the call is on dir or a file in it.
func (c *call) concerns(dir string) bool {
	switch c.name {
	case Openat, Unlinkat, Newfstatat, Renameat2:
		return within(c.path(0), dir)
	case Fcntl:
		return c.args[1] == setLockCommand && within(c.target(c.args[0]), dir)
	}
	return within(c.target(c.args[0]), dir)
}

// target is the path a descriptor of the program leads to.
func (c *call) target(fd uint64) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", c.tid, int32(fd)))
	if err != nil {
		return ""
	}
	return path
}

// path is the path named by the directory descriptor in argument i and the
// string behind it.
func (c *call) path(i int) string {
	name := c.text(c.args[i+1])
	if strings.HasPrefix(name, "/") {
		return name
	}
	if int32(c.args[i]) == unix.AT_FDCWD {
		return "" // every test names its files by absolute paths
	}
	return c.target(c.args[i]) + "/" + name
}

// text reads a string of the program's memory. It is read piecewise up to the
// end of a page, behind which there may be nothing.
func (c *call) text(at uint64) string {
	var s []byte
	for len(s) < unix.PathMax {
		b := make([]byte, 4096-at%4096)
		n, err := c.read(b, at)
		if err != nil || n == 0 {
			return ""
		}
		if end := bytes.IndexByte(b[:n], 0); end >= 0 {
			return string(append(s, b[:end]...))
		}
		s, at = append(s, b[:n]...), at+uint64(n)
	}
	return ""
}

func (c *call) read(b []byte, at uint64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	return unix.ProcessVMReadv(int(c.tid), local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
}

func (c *call) write(b []byte, at uint64) error {
	if len(b) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMWritev(int(c.tid), local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
	if err == nil && n < len(b) {
		err = unix.EFAULT
	}
	return err
}

// perform carries the call out on a copy of the program's descriptor and tells
// the shadow. What works on more than one descriptor is left to the program.
func (c *call) perform(shadow *Shadow, much extent) *response {
	r := &response{id: c.id}
	switch c.name {
	case Pread64, Pwrite64, Fdatasync, Fsync, Ftruncate, Fallocate:
	default:
		r.flags = responseContinue
		return r
	}
	fd, err := unix.PidfdGetfd(c.pidfd, int(int32(c.args[0])), 0)
	if err == nil {
		shadow.meet(fd)
		r.value, err = c.performOn(fd, shadow, much)
		_ = unix.Close(fd) // the program's own descriptor stays
	}
	if err != nil {
		var errno unix.Errno
		if !errors.As(err, &errno) {
			errno = unix.EFAULT
		}
		r.value, r.err = 0, -int32(errno)
	}
	return r
}

func (c *call) performOn(fd int, shadow *Shadow, much extent) (int64, error) {
	switch c.name {
	case Pread64:
		b := make([]byte, c.length(much))
		n, err := unix.Pread(fd, b, int64(c.args[3]))
		if err != nil {
			return 0, err
		}
		return int64(n), c.write(b[:n], c.args[1])
	case Pwrite64:
		b := make([]byte, c.length(much))
		if _, err := c.read(b, c.args[1]); err != nil {
			return 0, err
		}
		n, err := unix.Pwrite(fd, b, int64(c.args[3]))
		if err != nil {
			return 0, err
		}
		shadow.wrote(fd, b[:n], int64(c.args[3]))
		return int64(n), nil
	case Fdatasync, Fsync:
		if err := unix.Fsync(fd); err != nil {
			return 0, err
		}
		shadow.synced(fd)
	case Ftruncate:
		if err := unix.Ftruncate(fd, int64(c.args[1])); err != nil {
			return 0, err
		}
		shadow.sized(fd)
	case Fallocate:
		if err := unix.Fallocate(fd, uint32(c.args[1]), int64(c.args[2]), int64(c.args[3])); err != nil {
			return 0, err
		}
		shadow.sized(fd)
	}
	return 0, nil
}

// length is how many bytes of a read or write are carried out: at least one,
// so that half of a call is never none of it.
func (c *call) length(much extent) int {
	n := int(c.args[2])
	if much == half && n > 1 {
		return n / 2
	}
	return n
}
