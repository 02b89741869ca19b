package notif

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/faults/internal/unsynced"
)

// Shadow is what the strictest disk would hold of one directory: of a file,
// what a sync that returned nil covered; of the directory, the names at its
// last sync. It outlives a run, so that what one process left unsynced is still
// unsynced for the next.
//
// A sync that fails marks everything pending as lost for good: the kernel has
// it as clean in memory, and no later sync of the same bytes carries it. Only
// writing it again does.
//
// All methods of a nil Shadow do nothing.
type Shadow struct {
	dir   string
	files map[inode]*unsynced.File
	names map[string]inode
}

// inode identifies a file also after its number was used again.
type inode struct {
	number uint64
	born   unix.StatxTimestamp
}

// NewShadow takes everything in dir for durable.
func NewShadow(dir string) (*Shadow, error) {
	s := &Shadow{dir: dir, files: map[inode]*unsynced.File{}}
	names, err := s.list()
	s.names = names
	for name, ino := range names {
		b, readErr := os.ReadFile(filepath.Join(dir, name))
		s.files[ino] = unsynced.Durable(b)
		err = errors.Join(err, readErr)
	}
	return s, err
}

func (s *Shadow) list() (map[string]inode, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	names := map[string]inode{}
	for _, e := range entries {
		ino, _, err := identify(unix.AT_FDCWD, filepath.Join(s.dir, e.Name()))
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names[e.Name()] = ino
	}
	return names, nil
}

// identify asks what a path, or a descriptor with an empty path, leads to.
func identify(fd int, path string) (ino inode, dir bool, err error) {
	var st unix.Statx_t
	err = unix.Statx(fd, path, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_BTIME, &st)
	return inode{st.Ino, st.Btime}, st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

// behind says what fd leads to; the directory itself has no shadow file.
func (s *Shadow) behind(fd int) (ino inode, dir, ok bool) {
	if s == nil {
		return inode{}, false, false
	}
	ino, dir, err := identify(fd, "")
	return ino, dir, err == nil
}

// meet makes sure that there is a shadow of the file behind fd: it is new if it
// was not there when the shadow began.
func (s *Shadow) meet(fd int) {
	ino, dir, ok := s.behind(fd)
	if ok && !dir && s.files[ino] == nil {
		s.files[ino] = &unsynced.File{}
	}
}

func (s *Shadow) wrote(fd int, b []byte, off int64) {
	if ino, dir, ok := s.behind(fd); ok && !dir {
		s.files[ino].Write(append([]byte{}, b...), off)
	}
}

// sized notes a size that was set by truncating or allocating.
func (s *Shadow) sized(fd int) {
	ino, dir, ok := s.behind(fd)
	if !ok || dir {
		return
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil {
		s.files[ino].Resize(st.Size)
	}
}

// synced makes everything pending durable.
func (s *Shadow) synced(fd int) {
	ino, dir, ok := s.behind(fd)
	if !ok {
		return
	}
	if dir {
		if names, err := s.list(); err == nil {
			s.names = names
		}
		return
	}
	s.files[ino].Sync()
}

// failed notes that a call met a fault instead of being carried out.
func (s *Shadow) failed(c *call) {
	if s == nil || c.name != Fdatasync && c.name != Fsync {
		return
	}
	fd, err := unix.PidfdGetfd(c.pidfd, int(int32(c.args[0])), 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if ino, dir, ok := s.behind(fd); ok && !dir && s.files[ino] != nil {
		s.files[ino].FailSync()
	}
}

// Image writes what a power cut now may leave into the new directory to: with a
// nil r nothing that was not synced, else any of its sectors.
func (s *Shadow) Image(to string, r *rand.Rand) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for name, ino := range s.names {
		f := s.files[ino]
		if f == nil {
			return fmt.Errorf("name %q leads to a file nobody wrote", name)
		}
		b := f.Drop()
		if r != nil {
			b = f.Some(r)
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Describe prints what is pending, for messages.
func (s *Shadow) Describe(w io.Writer) {
	for name, ino := range s.names {
		if f := s.files[ino]; f != nil {
			fmt.Fprintf(w, "%s: %d bytes durable, %d changes pending\n", name, len(f.Drop()), f.Pending())
		}
	}
}
