package pagelog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// spot is a name in a directory.
type spot struct {
	env  Env
	name string
	path string // for messages
}

// between opens the directories of two paths for the time of do.
func between(path, newPath string, do func(from, to spot) error) error {
	from, err := spotAt(path)
	if err != nil {
		return err
	}
	to, err := spotAt(newPath)
	if err != nil {
		return errors.Join(err, from.env.Dir.Close())
	}
	return errors.Join(do(from, to), to.env.Dir.Close(), from.env.Dir.Close())
}

func spotAt(path string) (spot, error) {
	name := filepath.Base(path)
	if name == "." || name == ".." || name == string(filepath.Separator) {
		return spot{}, fmt.Errorf("%s: %w: a log is a file", path, ErrNotALog)
	}
	dir, err := disk.OpenDir(filepath.Dir(path))
	if err != nil {
		return spot{}, err
	}
	return spot{Env{Dir: dir}.withDefaults(), name, path}, nil
}

// fail names the path in an error.
func (s *spot) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// open opens the log here for reading.
func (s *spot) open(anyFileSystem bool) (disk.File, error) {
	if _, err := admit(s.env.Dir, anyFileSystem); err != nil {
		return nil, s.fail(err)
	}
	f, err := openNamed(s.env.Dir, s.name, disk.ReadOnly)
	return f, s.fail(err)
}

// vacant refuses a name that is taken, before any work is done. Publishing
// refuses it again.
func (s *spot) vacant(anyFileSystem bool) error {
	if _, err := admit(s.env.Dir, anyFileSystem); err != nil {
		return s.fail(err)
	}
	f, err := s.env.Dir.Open(s.name, disk.ReadOnly)
	switch {
	case err == nil:
		return errors.Join(s.fail(fmt.Errorf("%w: give the new log another name", fs.ErrExist)), f.Close())
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, disk.ErrNotRegular), errors.Is(err, fs.ErrPermission):
		return s.fail(fmt.Errorf("%w: give the new log another name", fs.ErrExist))
	}
	return s.fail(err)
}

// publish makes a file of what fill writes and gives it its name in one step,
// never replacing: a crash leaves nothing under the name, or a whole file.
func (s *spot) publish(fill func(f disk.File) error) error {
	if err := sweep(s.env.Dir, s.name); err != nil {
		return err
	}
	f, temp, err := createTemp(s.env, s.name)
	if err != nil {
		return s.fail(noSpace("create a temporary file", err))
	}
	err = fill(f)
	if err == nil {
		err = s.settle(f)
	}
	if err != nil {
		return errors.Join(err, f.Close(), s.env.Dir.Remove(temp))
	}
	if err := s.env.Dir.Sync(); err != nil {
		return errors.Join(s.fail(fmt.Errorf("sync the directory: %w", err)), f.Close())
	}
	return s.fail(f.Close())
}

// settle makes a whole file durable and gives it its name.
func (s *spot) settle(f disk.File) error {
	if err := f.Sync(); err != nil {
		return s.fail(noSpace("sync", err))
	}
	return s.fail(s.env.Dir.Publish(f, s.name))
}

// forward writes a file from front to back in large pieces.
type forward struct {
	f   disk.File
	off int64 // of buf[0]
	buf []byte
}

// put adds bytes at off, which must not lie below what was put before.
func (w *forward) put(b []byte, off int64) error {
	if off != w.off+int64(len(w.buf)) || len(w.buf) > 0 && len(w.buf)+len(b) > readChunk {
		if err := w.flush(); err != nil {
			return err
		}
		w.off = off
	}
	if len(b) >= readChunk {
		return w.write(b)
	}
	w.buf = append(w.buf, b...)
	return nil
}

func (w *forward) flush() error {
	err := w.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *forward) write(b []byte) error {
	err := rewrite(w.f, b, w.off)
	w.off += int64(len(b))
	return noSpaceOr(err)
}

// noSpaceOr says ErrNoSpace in the engine's words.
func noSpaceOr(err error) error {
	if err == nil {
		return nil
	}
	return noSpace("write the new log", err)
}
