//go:build linux || darwin || windows

package disk_test

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

func TestOS_LifeOfAFile(t *testing.T) {
	d, err := disk.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Create("tmp")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Lock(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("tide"), 4); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Allocate(0, 8192), f.Punch(0, 4), f.Sync(), d.Publish(f, "log"), d.Sync()); err != nil {
		t.Fatal(err)
	}
	named, err := f.Named()
	if err != nil || !named {
		t.Fatalf("Named = %v, %v", named, err)
	}
	g, err := d.Open("log", disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Lock(); !errors.Is(err, disk.ErrLocked) {
		t.Fatalf("second Lock = %v", err)
	}
	got := make([]byte, 8)
	if _, err := g.ReadAt(got, 0); err != nil || !bytes.Equal(got, []byte("\x00\x00\x00\x00tide")) {
		t.Fatalf("ReadAt = %q, %v", got, err)
	}
	if _, err := d.Open("tmp", disk.ReadOnly); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Open of the old name = %v", err)
	}
	if err := errors.Join(f.Close(), g.Lock(), d.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
}
