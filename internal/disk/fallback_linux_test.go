package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Wrap lets the tests outside see how errors are made.
var Wrap = wrap

func name(t *testing.T, text string) sysName {
	t.Helper()
	n, err := encodeName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func open(t *testing.T, path string) (*osDir, string) {
	t.Helper()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.(*osDir), path
}

func TestLinkAt_InsteadOfRename(t *testing.T) {
	d, path := open(t, t.TempDir())
	for _, file := range []string{"tmp", "taken"} {
		if err := os.WriteFile(filepath.Join(path, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := linkAt(d.h.sys, name(t, "tmp"), name(t, "taken")); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("linkAt over a taken name = %v", err)
	}
	if err := linkAt(d.h.sys, name(t, "tmp"), name(t, "log")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(path, "log")); string(got) != "tmp" || err != nil {
		t.Errorf("log holds %q, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(path, "taken")); string(got) != "taken" || err != nil {
		t.Errorf("taken holds %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(path, "tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name = %v", err)
	}
}

func TestExtendWithZeros_InsteadOfFallocate(t *testing.T) {
	d, path := open(t, t.TempDir())
	f, err := d.Create("log")
	if err != nil {
		t.Fatal(err)
	}
	h := f.(*osFile).sys
	content := strings.Repeat("x", 1000)
	for _, end := range []int64{0, 1000, 500, 300_000} {
		if _, err := f.WriteAt([]byte(content), 0); err != nil {
			t.Fatal(err)
		}
		if err := extendWithZeros(h, end); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(path, "log"))
	if want := content + strings.Repeat("\x00", 299_000); string(got) != want || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOldStatName_AgreesWithStatx(t *testing.T) {
	d, path := open(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(path, "log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"log", "absent"} {
		a, errA := statName(d.h.sys, name(t, file))
		b, errB := oldStatName(d.h.sys, name(t, file))
		if a.id != b.id || a.mode&0o170000 != b.mode&0o170000 || !errors.Is(errA, errB) {
			t.Errorf("%s: statx says %+v, %v; fstatat says %+v, %v", file, a, errA, b, errB)
		}
	}
}

// Between the look at a name and its opening somebody may put a link there.
func TestOpenAt_LinkPutThereMeanwhile(t *testing.T) {
	d, path := open(t, t.TempDir())
	if err := os.Symlink("/etc/passwd", filepath.Join(path, "log")); err != nil {
		t.Fatal(err)
	}
	fd, err := openAt(d.h.sys, name(t, "log"), unix.O_RDONLY|openFlags, 0)
	if err == nil {
		_ = closeHandle(fd)
	}
	if !errors.Is(err, unix.ELOOP) {
		t.Errorf("openAt = %v", err)
	}
}

// A child between fork and exec shares the descriptor. Closing ours drops the
// lock all the same.
func TestClose_UnlocksWhileAnotherSharesTheDescriptor(t *testing.T) {
	d, _ := open(t, t.TempDir())
	f, err := d.Create("log")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Lock(); err != nil {
		t.Fatal(err)
	}
	shared, err := unix.Dup(f.(*osFile).sys)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeHandle(shared) }()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g, err := d.Open("log", ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Lock(), g.Close()); err != nil {
		t.Error(err)
	}
}

func TestFileSystemByMagic(t *testing.T) {
	for magic, want := range map[uint32]FileSystem{
		0xEF53:     {Name: "ext4"},
		0x9123683E: {Name: "btrfs", CopyOnWrite: true},
		0xFF534D42: {Name: "cifs", Network: true},
		0x12345678: {Name: "file system 0x12345678"},
	} {
		if got := fileSystemByMagic(magic); got != want {
			t.Errorf("magic 0x%x = %+v, want %+v", magic, got, want)
		}
	}
}
