//go:build linux || darwin || windows

package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

func TestOpenDir_NoDirectory(t *testing.T) {
	path := filepath.Join(scratch(t), "absent")
	if _, err := disk.OpenDir(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenDir of a missing path = %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.OpenDir(path); err == nil {
		t.Error("OpenDir of a file succeeded")
	}
}

func TestOpen_Directory(t *testing.T) {
	path := scratch(t)
	if err := os.Mkdir(filepath.Join(path, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	refused(t, openDir(t, path), "directory")
}

// refused checks that neither way of opening "log" accepts it, and that the
// error says what it is.
func refused(t *testing.T, d disk.Dir, what string) {
	t.Helper()
	for _, access := range []disk.Access{disk.ReadOnly, disk.ReadWrite} {
		f, err := d.Open("log", access)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, disk.ErrNotRegular) || !strings.Contains(err.Error(), what) {
			t.Errorf("Open = %v, want a refusal that says %q", err, what)
		}
	}
	if _, err := d.Create("log"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create = %v, want fs.ErrExist", err)
	}
}

// The calls of the write path and of the check before each acknowledgement do
// not allocate when they succeed.
func TestFile_HotCallsDoNotAllocate(t *testing.T) {
	f := create(t, openDir(t, scratch(t)), "log")
	page := make([]byte, 4096)
	calls := map[string]func() error{
		"WriteAt": func() error { _, err := f.WriteAt(page, 0); return err },
		"ReadAt":  func() error { _, err := f.ReadAt(page, 0); return err },
		"Stat":    func() error { _, err := f.Stat(); return err },
		"Named":   func() error { _, _, err := f.Named(); return err },
		"Sync":    f.Sync,
	}
	if runtime.GOOS == "darwin" {
		delete(calls, "Named") // see statName there
	}
	if _, err := f.WriteAt(page, 0); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		allocs := testing.AllocsPerRun(50, func() {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s allocates %v times", name, allocs)
		}
	}
}

// A write that comes too late finds the file closed. It must never reach
// whatever the system gave the same number to.
func TestFile_CloseWhileWriting(t *testing.T) {
	d := openDir(t, scratch(t))
	for range 20 {
		f, err := d.Create("log")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		began := make(chan struct{}, 2)
		for range 2 {
			wg.Go(func() {
				began <- struct{}{}
				for err := error(nil); !errors.Is(err, fs.ErrClosed); {
					if _, err = f.WriteAt([]byte("log"), 0); err != nil && !errors.Is(err, fs.ErrClosed) {
						t.Error(err)
						return
					}
				}
			})
		}
		<-began
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		other := create(t, d, "other")
		wg.Wait()
		if info, err := other.Stat(); err != nil || info.Size != 0 {
			t.Fatalf("the other file has %d bytes, %v", info.Size, err)
		}
		if err := errors.Join(other.Close(), d.Remove("other"), d.Remove("log")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLock_ChildDoesNotKeepIt(t *testing.T) {
	path := scratch(t)
	d := openDir(t, path)
	f := create(t, d, "log")
	if err := f.Lock(); err != nil {
		t.Fatal(err)
	}
	start(t, helper(t, "wait", path))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, d, "log").Lock(); err != nil {
		t.Errorf("Lock while a child of the former holder lives = %v", err)
	}
}

func TestLock_ProcessDies(t *testing.T) {
	path := scratch(t)
	d := openDir(t, path)
	f := create(t, d, "log")
	cmd := helper(t, "lock", path)
	line, _ := start(t, cmd)
	if got := line(); got != "locked" {
		t.Fatalf("helper: %s", got)
	}
	if err := f.Lock(); !errors.Is(err, disk.ErrLocked) {
		t.Fatalf("Lock while the other process lives = %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // reports the kill
	if err := f.Lock(); err != nil {
		t.Errorf("Lock after the other process was killed = %v", err)
	}
}
