package securedir

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// systems are the two implementations of System, each with a path to work in.
func systems(t *testing.T) map[string]func(t *testing.T) (System, string) {
	return map[string]func(t *testing.T) (System, string){
		"sim": func(*testing.T) (System, string) { return NewSim().Process(0, 0o022), "/home/private" },
		"host": func(t *testing.T) (System, string) {
			sys, err := testHost(t)
			if errors.Is(err, ErrUnsupported) {
				t.Skip("fails closed here: ", err)
			}
			must(t, err)
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			return sys, filepath.Join(dir, "home", "private")
		},
	}
}

var create = Options{Create: true, Random: rand.Reader, AnyFileSystem: true}

// Both implementations behave the same, step by step.
func TestConformance(t *testing.T) {
	for name, start := range systems(t) {
		t.Run(name, func(t *testing.T) {
			sys, path := start(t)
			_, err := Open(context.Background(), sys, path, Options{})
			wantErr(t, err, fs.ErrNotExist)
			d, err := Open(context.Background(), sys, path, create)
			must(t, err)
			again, err := Open(context.Background(), sys, path, create)
			must(t, err)
			if !d.Stat().Same(again.Stat()) || d.Stat().Mode != 0o700 || d.Stat().Birth == 0 {
				t.Errorf("%+v %+v", d.Stat(), again.Stat())
			}
			must(t, again.Close())
			must(t, again.Close())
			conformFiles(t, d)
			conformLocks(t, d)
			conformSweep(t, d)
			must(t, d.Close())
		})
	}
}

func conformFiles(t *testing.T, d *Dir) {
	f, err := d.Temp(rand.Reader)
	must(t, err)
	must(t, f.WriteAt([]byte("hello"), 3))
	must(t, f.Sync())
	must(t, f.Publish("a"))
	must(t, f.Check())
	b, st, err := d.Read("a", nil, 100)
	if must(t, err); string(b) != "\x00\x00\x00hello" || st.Mode != 0o600 || st.Links != 1 || st.Size != 8 {
		t.Errorf("%q %+v", b, st)
	}
	_, _, err = d.Read("a", nil, 7)
	wantErr(t, err, ErrUnsafe)
	g, err := d.Temp(rand.Reader)
	must(t, err)
	wantErr(t, g.Publish("a"), fs.ErrExist)
	if underWine() { // it replaces no file that is open, as Windows does
		must(t, f.Close())
	}
	must(t, g.Replace("a"))
	wantErr(t, f.Check(), ErrChanged)
	must(t, g.Check())
	must(t, g.DataSync())
	must(t, d.Sync())
	wantErr(t, g.ReadAt(make([]byte, 1), 0), io.ErrUnexpectedEOF)
	must(t, f.Close())
	must(t, g.Close())
	must(t, g.Close())
	h, err := d.Temp(rand.Reader)
	must(t, err)
	must(t, h.Discard())
	names, err := d.Names()
	if must(t, err); !slices.Equal(names, []string{"a"}) && len(names) != 1 {
		t.Errorf("%v", names)
	}
	_, err = d.Open("missing", Read)
	wantErr(t, err, fs.ErrNotExist)
	_, err = d.Lookup("missing")
	wantErr(t, err, fs.ErrNotExist)
	r, err := d.Open("a", Read)
	must(t, err)
	if err := r.WriteAt([]byte("x"), 0); err == nil {
		t.Error("written through a reading descriptor")
	}
	must(t, r.Close())
}

func conformLocks(t *testing.T, d *Dir) {
	open := func() *File {
		f, err := d.Open("a", ReadWrite)
		must(t, err)
		return f
	}
	// Windows has no conversion: a lock is given back before it is another one.
	_, simulated := d.sys.(*SimProcess)
	converts := simulated || runtime.GOOS != "windows"
	a, b := open(), open()
	must(t, a.Lock())
	if converts {
		must(t, a.Lock())
	}
	wantErr(t, b.Lock(), ErrLocked)
	must(t, a.Unlock())
	must(t, b.Lock())
	must(t, b.Close())
	must(t, a.Lock())
	const off = 1 << 60
	must(t, a.Range(off, LockExclusive))
	b = open()
	wantErr(t, b.Range(off, LockExclusive), ErrLocked)
	wantErr(t, b.Range(off, LockShared), ErrLocked)
	wantErr(t, b.Range(off, LockProbe), ErrLocked)
	if converts {
		must(t, a.Range(off, LockProbe))
	}
	must(t, b.Range(off+1, LockExclusive))
	open().Close() // closing another descriptor drops nothing
	wantErr(t, b.Range(off, LockProbe), ErrLocked)
	if !converts {
		must(t, a.Range(off, Unlock))
	}
	must(t, a.Range(off, LockShared))
	must(t, b.Range(off, LockShared))
	wantErr(t, a.Range(off, LockExclusive), ErrLocked)
	must(t, b.Range(off, Unlock))
	if !converts {
		must(t, a.Range(off, Unlock))
	}
	must(t, a.Range(off, LockExclusive))
	must(t, a.Close())
	must(t, b.Range(off, LockProbe))
	must(t, b.Range(off, LockExclusive))
	must(t, b.Close())
}

func conformSweep(t *testing.T, d *Dir) {
	live, err := d.Temp(rand.Reader)
	must(t, err)
	dead, err := d.Temp(rand.Reader)
	must(t, err)
	odd, err := d.Temp(rand.Reader)
	must(t, err)
	if err := d.sys.Chmod(odd.fd, 0); runtime.GOOS != "windows" { // which has nothing to set
		must(t, err)
	}
	must(t, dead.Close())
	must(t, odd.Close())
	n, err := d.Sweep()
	if must(t, err); n != 2 {
		t.Errorf("swept %d", n)
	}
	must(t, live.Check())
	must(t, live.Discard())
}

// Trap 10, T7: nothing is created below an unsafe ancestor, R6: and an existing
// leaf is left as it is.
func TestTrap10_NothingCreatedBelowAnUnsafeAncestor(t *testing.T) {
	s := NewSim()
	p := s.Process(0, 0)
	d, err := Open(context.Background(), p, "/a/b/c", create)
	must(t, err)
	must(t, d.Close())
	root, err := p.Root("/")
	must(t, err)
	a, err := p.Walk(root, "a")
	must(t, err)
	for _, mode := range []uint32{0o777, 0o770, 0o702} {
		must(t, p.Chmod(a, mode))
		_, err = Open(context.Background(), p, "/a/x/y", create)
		wantErr(t, err, ErrUnsafe)
		if names, err := p.Names(a); err != nil || len(names) != 1 {
			t.Errorf("%v %v", names, err)
		}
	}
	must(t, p.Chmod(a, 0o1777))
	d, err = Open(context.Background(), p, "/a/x/y", create)
	must(t, err)
	must(t, d.Close())
	foreign := s.Process(7, 0)
	_, err = Open(context.Background(), foreign, "/a/b/c", create)
	wantErr(t, err, ErrUnsafe)
}

// A walk leaks no descriptor, wherever it fails.
func TestR85_WalkLeaksNothing(t *testing.T) {
	for n := 1; ; n++ {
		p := NewSim().Process(0, 0o777)
		p.Plan(func(c Call) Fault {
			if c.N == n {
				return Fault{Kind: FailBefore, Err: syscall.EIO}
			}
			return Fault{}
		})
		d, err := Open(context.Background(), p, "/a/b", create)
		if err == nil {
			_ = d.Close() // the call that fails may be this one
		}
		if p.OpenFiles() != 0 {
			t.Fatalf("call %d: %d descriptors, %v", n, p.OpenFiles(), err)
		}
		if p.Calls() < n {
			return
		}
	}
}

// R12: the walked object is the retained one.
func TestR12_SwapBetweenWalkAndReopenIsNoticed(t *testing.T) {
	s := NewSim()
	p := s.Process(0, 0)
	d, err := Open(context.Background(), p, "/a/b", create)
	must(t, err)
	walked := d.Stat()
	walked.Inode++
	wantErr(t, d.confirm(walked, create), ErrChanged)
	must(t, d.Chmod(0o750))
	wantErr(t, d.confirm(d.Stat(), create), ErrUnsafe)
}

// Chmod is for this test only.
func (d *Dir) Chmod(mode uint32) error { return d.sys.Chmod(d.fd, mode) }

func TestSim_PowerCut(t *testing.T) {
	s := NewSim()
	p := s.Process(0, 0)
	d, err := Open(context.Background(), p, "/a", create)
	must(t, err)
	f, err := d.Temp(rand.Reader)
	must(t, err)
	must(t, f.WriteAt(make([]byte, 1024), 0))
	must(t, f.Publish("x"))
	must(t, f.Sync())
	seen := func(pick func(int) Fate) (string, bool) {
		q := s.PowerCut(pick).Process(0, 0)
		d, err := Open(context.Background(), q, "/a", Options{})
		must(t, err)
		b, _, err := d.Read("x", nil, 4096)
		return string(b), err == nil
	}
	if _, there := seen(func(int) Fate { return Lost }); there {
		t.Error("a name survived without a sync of its directory")
	}
	must(t, d.Sync())
	must(t, f.WriteAt([]byte("new"), 510)) // two sectors
	for pick, want := range map[[2]Fate]string{
		{Lost, Lost}: "\x00\x00\x00", {Kept, Lost}: "ne\x00", {Lost, Kept}: "\x00\x00w", {Kept, Kept}: "new",
	} {
		if b, _ := seen(func(i int) Fate { return pick[i] }); b[510:513] != want {
			t.Errorf("%v: %q", pick, b[510:513])
		}
	}
	if b, _ := seen(func(int) Fate { return Garbled }); b[510:513] == "new" || b[510:513] == "\x00\x00\x00" {
		t.Errorf("garbled: %q", b[510:513])
	}
	// A failed sync leaves doubt that a later nil does not remove, until the
	// page is written again.
	fail := func(c Call) Fault {
		if c.Op == "datasync" {
			return Fault{Kind: FailBefore, Err: syscall.EIO}
		}
		return Fault{}
	}
	p.Plan(fail)
	wantErr(t, f.DataSync(), syscall.EIO)
	p.Plan(nil)
	must(t, f.DataSync())
	if b, _ := seen(func(int) Fate { return Lost }); b[510:513] == "new" {
		t.Error("a nil after a failed sync made bytes durable")
	}
	must(t, f.WriteAt([]byte("w"), 512))
	must(t, f.DataSync())
	if b, _ := seen(func(int) Fate { return Lost }); b[510:513] != "new" {
		t.Errorf("written again and synced: %q", b[510:513])
	}
}

func TestHost_WalkRefusesLinks(t *testing.T) {
	if underWine() {
		t.Skip("Wine says that it made a link, and made none")
	}
	sys, err := testHost(t)
	if err != nil {
		t.Skip(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	must(t, os.Symlink("real", filepath.Join(dir, "link")))
	for _, o := range []Options{create, {}} {
		if _, err := Open(context.Background(), sys, filepath.Join(dir, "link"), o); Class(err) != "unsafe" {
			t.Errorf("R13: %v", err)
		}
	}
}
