package securedir

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"
)

// underWine reports a Windows that is none. Wine keeps modes and not lists, so
// what a list comes to cannot be tried there.
func underWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// testHost is the host; under Wine, with every object taken for private.
func testHost(t *testing.T) (System, error) {
	s, err := Host()
	if err != nil || !underWine() {
		return s, err
	}
	h := s.(*host)
	h.judge = func(raw []byte, _ string, dir bool) (uid, mode uint32) {
		if _, ok := parseDescriptor(raw); !ok {
			t.Error("the system's own descriptor cannot be read")
		}
		if dir {
			return ownerUser, dirMode
		}
		return ownerUser, fileMode
	}
	return h, nil
}

func privateHere(t *testing.T) (*Dir, string) {
	t.Helper()
	sys, err := testHost(t)
	must(t, err)
	path := filepath.Join(t.TempDir(), "private")
	d, err := Open(context.Background(), sys, path, create)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d, path
}

// R21: what is created carries the private descriptor, says the handle.
func TestHost_R21_CreatedPrivate(t *testing.T) {
	if underWine() {
		t.Skip("Wine keeps no access control lists")
	}
	d, _ := privateHere(t)
	if d.Stat().Mode != dirMode || d.Stat().UID != ownerUser {
		t.Errorf("%+v", d.Stat())
	}
	f, err := d.Temp(rand.Reader)
	must(t, err)
	if f.Stat().Mode != fileMode || f.Stat().UID != ownerUser {
		t.Errorf("%+v", f.Stat())
	}
	must(t, f.Discard())
}

// R22: shares, devices and directories that are not there are refused.
func TestHost_R22_OnlyLocalVolumes(t *testing.T) {
	sys, err := testHost(t)
	must(t, err)
	for _, p := range []string{`\\localhost\c$\x`, `\\.\C:\x`, `Q:\nowhere\private`} {
		if d, err := Open(context.Background(), sys, p, create); err == nil {
			t.Errorf("%s was opened", p)
			_ = d.Close()
		}
	}
}

// R13, R22: a reparse point in the way is refused.
func TestHost_R22_ReparsePointsRefused(t *testing.T) {
	if underWine() {
		t.Skip("Wine says that it made a link, and made none")
	}
	sys, err := testHost(t)
	must(t, err)
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "real"), link); err != nil {
		t.Skip("cannot make links here: ", err)
	}
	_, err = Open(context.Background(), sys, filepath.Join(link, "private"), create)
	wantErr(t, err, ErrUnsafe)
}

// R15, R23: operations go through the handle: the directory renamed under it
// stays the one that is worked in.
func TestHost_R23_HandleRelative(t *testing.T) {
	d, path := privateHere(t)
	f, err := d.Temp(rand.Reader)
	must(t, err)
	must(t, f.WriteAt([]byte("hello"), 0))
	must(t, f.Sync())
	must(t, f.Publish("a"))
	must(t, f.Check())
	must(t, os.Link(filepath.Join(path, "a"), filepath.Join(path, "b")))
	_, err = d.Open("b", Read)
	wantErr(t, err, ErrUnsafe) // two names
	must(t, f.Close())
	must(t, d.Sync())
}

// Trap 1: a handle that published a file never deletes it, whatever is thrown
// away afterwards; and a scanner that holds the target for a while is waited
// for.
func TestHost_Trap01_PublishedStays(t *testing.T) {
	d, path := privateHere(t)
	for _, content := range []string{"old", "new"} {
		f, err := d.Temp(rand.Reader)
		must(t, err)
		must(t, f.WriteAt([]byte(content), 0))
		must(t, f.Sync())
		if content == "old" {
			must(t, f.Publish("a"))
		} else {
			must(t, f.Replace("a"))
		}
		must(t, f.Discard())
		b, err := os.ReadFile(filepath.Join(path, "a"))
		must(t, err)
		if string(b) != content {
			t.Errorf("%q", b)
		}
	}
	f, err := d.Temp(rand.Reader)
	must(t, err)
	wantErr(t, f.Publish("a"), fs.ErrExist)
	must(t, f.Discard())
}

// Bounded retries: what stays in the way is an error in the end.
func TestHost_RetriesAreBounded(t *testing.T) {
	tries := 0
	err := patiently(func() error { tries++; return windows.ERROR_SHARING_VIOLATION })
	if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) || tries != 10 || Class(err) != "busy" {
		t.Error(tries, err)
	}
	tries = 0
	must(t, patiently(func() error {
		if tries++; tries < 4 {
			return windows.ERROR_ACCESS_DENIED
		}
		return nil
	}))
	if tries != 4 {
		t.Error(tries)
	}
	wantErr(t, patiently(func() error { tries++; return windows.ERROR_DISK_FULL }), windows.ERROR_DISK_FULL)
	if tries != 5 {
		t.Error(tries)
	}
}
