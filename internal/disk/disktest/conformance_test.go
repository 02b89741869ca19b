// Package disktest_test holds every implementation of the file-system seam to
// the same behaviour: each sentence of the interface is a test, and each test
// runs against the operating system and against the simulator.
package disktest_test

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// behaviour is one promise of the interface. open gives another handle of the
// same directory, which is empty at first.
type behaviour struct {
	name string
	test func(t *testing.T, open opener)
}

type opener func() disk.Dir

func TestConformance(t *testing.T) {
	systems := []struct {
		name string
		make func(t *testing.T) opener
	}{
		{"os", operatingSystem},
		{"simulator", simulator},
	}
	for _, system := range systems {
		for _, part := range [][]behaviour{dirBehaviours, fileBehaviours, lockBehaviours} {
			for _, b := range part {
				t.Run(system.name+"/"+b.name, func(t *testing.T) { b.test(t, system.make(t)) })
			}
		}
	}
}

func operatingSystem(t *testing.T) opener {
	path := scratch(t)
	return func() disk.Dir {
		d, err := disk.OpenDir(path)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeAnyway(t, d) })
		return d
	}
}

// scratch is t.TempDir, except on Windows, where emptying it is a best effort:
// Wine 8 does not know the call that RemoveAll uses.
func scratch(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "windows" {
		return t.TempDir()
	}
	path, err := os.MkdirTemp("", "disktest")
	need(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// needUnlink skips where an open file keeps its name until it is closed: on
// Windows without POSIX semantics, which means FAT, old shares and Wine 8.
func needUnlink(t *testing.T, d disk.Dir) {
	t.Helper()
	if runtime.GOOS != "windows" {
		return
	}
	f := create(t, d, "probe", "")
	need(t, d.Remove("probe"))
	if _, named, err := f.Named(); named || err != nil {
		t.Skip("this system does not remove open files:", err)
	}
	need(t, f.Close())
}

func simulator(*testing.T) opener { return simdisk.New().Dir }

// closeAnyway closes what the test may have closed already.
func closeAnyway(t *testing.T, c interface{ Close() error }) {
	if err := c.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Close = %v", err)
	}
}

// need stops the test unless everything went well.
func need(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// refuse checks that an operation failed, with this very error and in the one
// shape that errors leave the seam in.
func refuse(t *testing.T, what string, got, want error) {
	t.Helper()
	var shape *fs.PathError
	if !errors.Is(got, want) || !errors.As(got, &shape) {
		t.Errorf("%s = %v, want %v in a *fs.PathError", what, got, want)
	}
}

func create(t *testing.T, d disk.Dir, name, content string) disk.File {
	t.Helper()
	f, err := d.Create(name)
	need(t, err)
	t.Cleanup(func() { closeAnyway(t, f) })
	put(t, f, content, 0)
	return f
}

func open(t *testing.T, d disk.Dir, name string, access disk.Access) disk.File {
	t.Helper()
	f, err := d.Open(name, access)
	need(t, err)
	t.Cleanup(func() { closeAnyway(t, f) })
	return f
}

func put(t *testing.T, f disk.File, content string, off int64) {
	t.Helper()
	if n, err := f.WriteAt([]byte(content), off); err != nil || n != len(content) {
		t.Fatalf("WriteAt = %d, %v, want %d", n, err, len(content))
	}
}

// holds checks the whole content of a file and its size.
func holds(t *testing.T, f disk.File, want string) {
	t.Helper()
	info, err := f.Stat()
	need(t, err)
	got := make([]byte, info.Size)
	if n, err := f.ReadAt(got, 0); n != len(got) {
		t.Fatalf("ReadAt = %d, %v, want %d", n, err, len(got))
	}
	if string(got) != want {
		t.Errorf("content = %.200q (%d bytes), want %.200q (%d bytes)", got, len(got), want, len(want))
	}
}

// isNamed checks Named and the number of links.
func isNamed(t *testing.T, f disk.File, want bool, links uint64) {
	t.Helper()
	size, got, err := f.Named()
	if err != nil || got != want {
		t.Errorf("Named = %v, %v, want %v", got, err, want)
	}
	if info, err := f.Stat(); err != nil || info.Links != links || want && info.Size != size {
		t.Errorf("Stat = %+v, %v, want %d links and %d bytes", info, err, links, size)
	}
}
