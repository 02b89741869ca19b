//go:build linux || darwin

package disk_test

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/internal/disk"
)

func TestOpen_FIFO(t *testing.T) {
	path := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(path, "log"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, openDir(t, path), "FIFO") // and returns, although nobody has the other end
}

func TestOpen_Socket(t *testing.T) {
	path := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(path, "log"))
	if err != nil {
		skip(t, "no Unix sockets here:", err)
	}
	defer func() { _ = l.Close() }()
	refused(t, openDir(t, path), "socket")
}

func TestOpen_SymbolicLink(t *testing.T) {
	for _, target := range []string{"target", "absent", "/etc/passwd", "log"} {
		t.Run(strings.ReplaceAll(target, "/", "_"), func(t *testing.T) {
			path := t.TempDir()
			if err := os.WriteFile(filepath.Join(path, "target"), []byte("tide"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(path, "log")); err != nil {
				t.Fatal(err)
			}
			refused(t, openDir(t, path), "symbolic link")
		})
	}
}

// Somebody who puts a link to the very file in its place has taken the name
// away: a link may lead elsewhere a moment later.
func TestNamed_SymbolicLinkToIt(t *testing.T) {
	path := t.TempDir()
	f := create(t, openDir(t, path), "log")
	at := func(name string) string { return filepath.Join(path, name) }
	if err := os.Rename(at("log"), at("moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("moved", at("log")); err != nil {
		t.Fatal(err)
	}
	if _, named, err := f.Named(); named || err != nil {
		t.Errorf("Named = %v, %v", named, err)
	}
}

func TestNamed_HardLinks(t *testing.T) {
	path := t.TempDir()
	f := create(t, openDir(t, path), "log")
	if err := os.Link(filepath.Join(path, "log"), filepath.Join(path, "second")); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Links != 2 {
		t.Errorf("Stat = %+v, %v, want 2 links", info, err)
	}
}

func TestCreate_Mode(t *testing.T) {
	path := t.TempDir()
	create(t, openDir(t, path), "log")
	info, err := os.Stat(filepath.Join(path, "log"))
	if err != nil || info.Mode().Perm()&^0o600 != 0 {
		t.Errorf("mode = %v, %v, want nothing beyond 0600", info.Mode(), err)
	}
}

// The directory is held by descriptor: renaming it, and putting another in its
// place, changes nothing.
func TestDir_RenamedUnderneath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	d := openDir(t, path)
	f := create(t, d, "tmp")
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Publish(f, "log"); err != nil {
		t.Fatal(err)
	}
	if _, named, err := f.Named(); !named || err != nil {
		t.Errorf("Named = %v, %v", named, err)
	}
	if _, err := os.Stat(filepath.Join(path+".moved", "log")); err != nil {
		t.Error(err)
	}
	if _, err := disk.OpenDir(path); err != nil {
		t.Error(err)
	}
}

// TestW11_OneDescriptorPerDirectory: a thousand logs in one directory must not
// cost a thousand descriptors for the directory.
func TestW11_OneDescriptorPerDirectory(t *testing.T) {
	path := t.TempDir()
	count := func() int {
		names, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip("no /dev/fd here: ", err)
		}
		return len(names)
	}
	first := openDir(t, path)
	before := count()
	for range 10 {
		d := openDir(t, path)
		f, err := d.Create(rand.Text())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	if got := count() - before; got != 10 {
		t.Errorf("10 files through 10 more openings of one directory cost %d descriptors, want 10", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Names(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed directory says %v", err)
	}
	if _, err := openDir(t, path).Names(); err != nil {
		t.Errorf("closing one opening closed another: %v", err)
	}
}
