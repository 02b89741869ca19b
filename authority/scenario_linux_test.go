package authority

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/tidemark-log/tidemark/snapshot"
)

// Scenarios on a real file system. Those that need none stand in
// scenario_test.go.

// T1: paths that would mean something else to someone are refused before any
// system call.
func TestT01_PathsRefused(t *testing.T) {
	base := tempDir(t)
	for _, path := range []string{
		base + "/authority/", base + "/x/../authority", base + "//authority", base + "/./authority",
		"authority", "./authority", "/", "//", base + "/a\x00b", base + "/" + strings.Repeat("x/", 3000) + "y",
	} {
		_, err := Open(ctx, path, Options{Create: true})
		wantErr(t, err, ErrUnavailable)
	}
	if entries, err := os.ReadDir(base); err != nil || len(entries) != 0 {
		t.Errorf("created %v (%v)", entries, err)
	}
}

func TestT01_SymlinkInAnyComponentRefused(t *testing.T) {
	base := tempDir(t)
	must(t, os.MkdirAll(filepath.Join(base, "real", "deep"), 0o755))
	a, err := Open(ctx, filepath.Join(base, "real", "deep", "authority"), Options{Create: true})
	must(t, err)
	must(t, a.Close())
	must(t, os.Symlink(filepath.Join(base, "real"), filepath.Join(base, "link")))
	must(t, os.Symlink(filepath.Join(base, "real", "deep", "authority"), filepath.Join(base, "leaf")))
	for _, path := range []string{filepath.Join(base, "link", "deep", "authority"), filepath.Join(base, "leaf")} {
		_, err := Open(ctx, path, Options{Create: true})
		wantErr(t, err, ErrUnavailable) // R13
	}
}

// T2, same user: the lock's name is swapped for a symbolic link as fast as can
// be, and the victim it points to is never locked, written or believed.
func TestT02_SwappedLockIsNeverFollowed(t *testing.T) {
	a, dir := tempAuthority(t)
	victim := filepath.Join(tempDir(t), "victim")
	must(t, os.WriteFile(victim, nil, 0o600))
	e := suspendedOn(t, a, "run")
	lock := filepath.Join(dir, nameOf("run").lock())
	aside := lock[:len(lock)-5] + ".aside"
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Rename(lock, aside)
				_ = os.Symlink(victim, lock)
				_ = os.Remove(lock)
				_ = os.Rename(aside, lock)
			}
		}
	})
	refused := 0
	for until := time.Now().Add(attackFor() / 2); time.Now().Before(until); {
		i, err := a.PrepareImport(ctx, e)
		if err != nil {
			refused++
			continue
		}
		if st := i.hold.lock.Stat(); st.Size != sectorSize {
			t.Fatal("another file was locked")
		}
		must(t, i.Close())
	}
	close(stop)
	swapping.Wait()
	if b, err := os.ReadFile(victim); err != nil || len(b) != 0 {
		t.Errorf("the victim was written: %d bytes, %v", len(b), err)
	}
	t.Logf("%d refusals", refused)
}

// suspendedOn leaves a run suspended and free.
func suspendedOn(t testing.TB, a *Authority, id string) Envelope {
	t.Helper()
	l, err := a.Start(ctx, id)
	must(t, err)
	e, err := suspend(ctx, l, snap(t, id, 7, snapshot.Suspended))
	must(t, err)
	must(t, l.Close())
	return e
}

// R14, R15: whatever becomes of the path, everything goes on in the directory
// that was opened.
func TestR15_RenamedAndReplacedUnderTheOpenDirectory(t *testing.T) {
	a, dir := tempAuthority(t)
	l, err := a.Start(ctx, "run")
	must(t, err)
	must(t, os.Rename(dir, dir+".moved"))
	fake, err := Open(ctx, dir, Options{Create: true})
	must(t, err)
	e, err := suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
	must(t, err)
	must(t, l.Resume(ctx))
	l2, err := a.Start(ctx, "run 2")
	must(t, err)
	if _, err := fake.Verify(ctx, e); err != ErrVerification {
		t.Errorf("R59: the substitute believes: %v", err)
	}
	if n := names(t, fake); len(n) != 2 {
		t.Errorf("written into the substitute: %v", n)
	}
	must(t, l2.Close())
	must(t, l.Close())
	must(t, fake.Close())
	b, err := Open(ctx, dir+".moved", Options{}) // moved, not copied: the same directory
	must(t, err)
	must(t, b.Close())
}

func TestTrap14_T08_SpecialFilesNeverHang(t *testing.T) {
	for _, what := range []string{"fifo", "socket", "directory", "dangling", "symlink"} {
		for _, at := range []string{"state", "lock", keysName, lockName} {
			a, dir := tempAuthority(t)
			e := suspendedOn(t, a, "run")
			n := nameOf("run")
			path := filepath.Join(dir, map[string]string{"state": n.state(), "lock": n.lock(), keysName: keysName, lockName: lockName}[at])
			must(t, os.Rename(path, filepath.Join(dir, "aside")))
			switch what {
			case "fifo":
				must(t, syscall.Mkfifo(path, 0o600))
			case "socket":
				must(t, syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0))
			case "directory":
				must(t, os.Mkdir(path, 0o700))
			case "dangling":
				must(t, os.Symlink("nowhere", path))
			case "symlink":
				must(t, os.Symlink("aside", path))
			}
			_, err := a.PrepareImport(ctx, e)
			if err == nil {
				t.Errorf("%s at %s: imported", what, at)
			}
			if _, err := a.Start(ctx, "run"); err == nil || errors.Is(err, ErrUncertain) {
				t.Errorf("%s at %s: start: %v", what, at, err)
			}
			if b, err := Open(ctx, dir, Options{Create: true}); at == keysName || at == lockName {
				wantErr(t, err, ErrUnavailable)
			} else if must(t, err); true {
				must(t, b.Close())
			}
			if got, err := os.Lstat(path); err != nil || got.Mode().IsRegular() {
				t.Errorf("%s at %s was replaced (%v)", what, at, err)
			}
		}
	}
}

func TestR17_HardLinksAndWrongModesRefused(t *testing.T) {
	for name, spoil := range map[string]func(dir, path string) error{
		"hard link":       func(dir, path string) error { return os.Link(path, filepath.Join(dir, "second")) },
		"R16: mode 0640":  func(_, path string) error { return os.Chmod(path, 0o640) },
		"R16: mode 0400":  func(_, path string) error { return os.Chmod(path, 0o400) },
		"R16: set-id bit": func(_, path string) error { return os.Chmod(path, 0o600|os.ModeSetuid) },
		"foreign owner":   func(_, path string) error { return os.Chown(path, otherUser, otherUser) },
	} {
		for _, at := range []string{"state", "lock", keysName, lockName} {
			if name == "foreign owner" {
				mustRoot(t)
			}
			a, dir := tempAuthority(t)
			e := suspendedOn(t, a, "run")
			n := nameOf("run")
			must(t, spoil(dir, filepath.Join(dir, map[string]string{"state": n.state(), "lock": n.lock(), keysName: keysName, lockName: lockName}[at])))
			if at == keysName || at == lockName {
				_, err := Open(ctx, dir, Options{Create: true})
				wantErr(t, err, ErrUnavailable)
				continue
			}
			if _, err := a.PrepareImport(ctx, e); err == nil {
				t.Errorf("%s at %s: imported", name, at)
			}
			if info, err := a.Inspect(ctx, "run"); err != nil || info.Phase != Damaged {
				t.Errorf("%s at %s: %+v %v", name, at, info, err)
			}
		}
	}
}

// A hard link made while the run is held stops its owner before the next write.
func TestR16_HardLinkUnderAHeldRun(t *testing.T) {
	a, dir := tempAuthority(t)
	l, err := a.Start(ctx, "run")
	must(t, err)
	must(t, os.Link(filepath.Join(dir, nameOf("run").state()), filepath.Join(dir, "second")))
	_, err = suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
	wantErr(t, err, ErrLost)
	must(t, l.Close())
}

// T9: older copies of parts and of the whole.
func TestT09_R108_OlderCopies(t *testing.T) {
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		must(t, err)
		return b
	}
	// restore puts a file back the way tools do: a new file, renamed over.
	restore := func(path string, b []byte) {
		must(t, os.WriteFile(path+".tmp", b, 0o600))
		must(t, os.Rename(path+".tmp", path))
	}
	for _, parts := range []string{"state", "lock", "state and lock", "state over in place"} {
		a, dir := tempAuthority(t)
		e := suspendedOn(t, a, "run")
		state, lock := filepath.Join(dir, nameOf("run").state()), filepath.Join(dir, nameOf("run").lock())
		oldState, oldLock := read(state), read(lock)
		i, err := a.PrepareImport(ctx, e)
		must(t, err)
		must(t, i.Consume(ctx))
		l, err := i.Activate(ctx)
		must(t, err)
		must(t, l.Close())
		switch parts {
		case "state over in place":
			must(t, os.WriteFile(state, oldState, 0o600))
		default:
			if strings.Contains(parts, "state") {
				restore(state, oldState)
			}
			if strings.Contains(parts, "lock") {
				restore(lock, oldLock)
			}
		}
		if info, err := a.Inspect(ctx, "run"); err != nil || info.Phase != Damaged {
			t.Errorf("%s: %+v %v", parts, info, err)
		}
		if _, err := a.PrepareImport(ctx, e); err == nil {
			t.Errorf("%s: a second consumer", parts)
		}
		if _, err := a.Verify(ctx, e); err != ErrVerification {
			t.Errorf("%s: verify: %v", parts, err)
		}
		must(t, a.Resolve(ctx, "run", snapshot.Failed))
		if info, err := a.Inspect(ctx, "run"); err != nil || info.Phase != Failed {
			t.Errorf("%s: resolved: %+v %v", parts, info, err)
		}
	}
}

func TestT09_RecordUnderAnotherName(t *testing.T) {
	a, dir := tempAuthority(t)
	suspendedOn(t, a, "x")
	l, err := a.Start(ctx, "y")
	must(t, err)
	must(t, l.Close())
	must(t, os.Rename(filepath.Join(dir, nameOf("x").state()), filepath.Join(dir, nameOf("y").state())))
	info, err := a.Inspect(ctx, "y")
	if must(t, err); info.Phase != Damaged {
		t.Errorf("%+v", info)
	}
	_, err = a.Start(ctx, "x") // its state file is gone, its witness is not
	wantErr(t, err, ErrState)
}

func TestT09_Trap07_CopiedDirectory(t *testing.T) {
	a, dir := tempAuthority(t)
	e := suspendedOn(t, a, "run")
	must(t, exec.Command("cp", "-a", dir, dir+".copy").Run())
	_, err := Open(ctx, dir+".copy", Options{Create: true})
	wantErr(t, err, ErrRelocated)
	// Put in the place of the original, it is still a copy.
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Rename(dir+".copy", dir))
	_, err = Open(ctx, dir, Options{Create: true})
	wantErr(t, err, ErrRelocated)
	if _, err := a.Verify(ctx, e); err != nil {
		t.Errorf("the original: %v", err)
	}
}

// T16: dangling links at every name are neither followed nor created through.
func TestT16_DanglingLinks(t *testing.T) {
	a, dir := tempAuthority(t)
	target := filepath.Join(tempDir(t), "created")
	must(t, os.Symlink(target, filepath.Join(dir, nameOf("run").state())))
	must(t, os.Symlink(target, filepath.Join(dir, nameOf("run 2").lock())))
	must(t, os.Symlink(target, filepath.Join(dir, "tmp-00000000000000000000000000000000")))
	for _, id := range []string{"run", "run 2"} {
		if _, err := a.Start(ctx, id); err == nil {
			t.Errorf("%s started", id)
		}
	}
	b, err := Open(ctx, dir, Options{}) // sweeps the temporary
	must(t, err)
	must(t, b.Close())
	if _, err := os.Lstat(target); err == nil {
		t.Error("created through a link")
	}
	for _, n := range names(t, a) {
		if strings.HasPrefix(n, "tmp-") {
			t.Errorf("not swept: %s", n)
		}
	}
}

// mounted makes a file system for a test.
func mounted(t *testing.T, args ...string) string {
	t.Helper()
	mustRoot(t)
	dir := tempDir(t)
	out, err := exec.Command("mount", append(args, dir)...).CombinedOutput()
	if err != nil {
		skipCounted(t, fmt.Sprintf("cannot mount: %s", bytes.TrimSpace(out)))
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

// T17: a disk that is really full. What runs go on running: a transition takes
// no new space.
func TestT17_FullDisk(t *testing.T) {
	dir := filepath.Join(mounted(t, "-t", "tmpfs", "-o", "size=512k,mode=755", "tmpfs"), "authority")
	a, err := Open(ctx, dir, Options{Create: true})
	must(t, err)
	var leases []*Lease
	for n := 0; ; n++ {
		l, err := a.Start(ctx, fmt.Sprint("run ", n))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Class != "full" || !errors.Is(err, ErrUnavailable) {
				t.Fatalf("run %d: %v", n, err)
			}
			break
		}
		leases = append(leases, l)
	}
	if len(leases) < 5 {
		t.Fatalf("only %d runs fit", len(leases))
	}
	_, err = suspend(ctx, leases[0], snap(t, "run 0", 7, snapshot.Suspended))
	must(t, err)
	for l := leases[1]; l.hold.record.slot < sectors-1; {
		cycle(t, l, 7)
	}
	_, err = finish(ctx, leases[1], snap(t, "run 1", 7, snapshot.Failed)) // needs a new file
	wantErr(t, err, ErrUnavailable)
	if n := names(t, a); strings.Contains(fmt.Sprint(n), "tmp-") {
		t.Errorf("left behind: %v", n)
	}
	must(t, leases[2].Close())
	must(t, os.Remove(filepath.Join(dir, nameOf("run 2").state())))
	_, err = finish(ctx, leases[1], snap(t, "run 1", 7, snapshot.Failed)) // the same call, with room
	must(t, err)
	for _, l := range leases {
		must(t, l.Close())
	}
	must(t, a.Close())
}

// T17: a file system that shuts down under a live lease. The outcome of the next
// transition is not success, and never becomes it.
func TestT17_FileSystemShutDown(t *testing.T) {
	mustRoot(t)
	image := filepath.Join(tempDir(t), "image")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 16<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		skipCounted(t, fmt.Sprintf("cannot make a file system: %s", out))
	}
	root := mounted(t, "-o", "loop", image)
	dir := filepath.Join(root, "authority")
	a, err := Open(ctx, dir, Options{Create: true})
	must(t, err)
	l, err := a.Start(ctx, "run")
	must(t, err)
	_, err = suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
	must(t, err)
	f, err := os.Open(root)
	must(t, err)
	const shutdown, noFlush = 0x8004587d, 2
	how := uint32(noFlush)
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&how))); e != 0 {
		skipCounted(t, "cannot shut it down: "+e.Error())
	}
	must(t, f.Close())
	err = l.Resume(ctx)
	if err == nil {
		t.Fatal("resumed on a dead file system")
	}
	again := l.Resume(ctx)
	if errors.Is(err, ErrUncertain) != errors.Is(again, ErrUncertain) || again == nil {
		t.Errorf("%v, then %v", err, again)
	}
	_ = l.Close() // uncertain or not
	_ = a.Close()
	must(t, exec.Command("umount", root).Run())
	must(t, exec.Command("mount", "-o", "loop", image, root).Run())
	b, err := Open(ctx, dir, Options{})
	must(t, err)
	info, err := b.Inspect(ctx, "run")
	if must(t, err); info.Phase != Suspended && info.Phase != Active {
		t.Errorf("after the reboot: %+v", info)
	}
	must(t, b.Close())
}

// T20, time: what a forger can measure does not tell it what exists.
func TestT20_R107_FailuresTakeTheSameTime(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	a, _ := tempAuthority(t)
	e := suspendedOn(t, a, "run")
	forgeries := forgeries(e)
	const tries = 10_000
	var spread time.Duration
	for range 3 { // other work on the machine may spoil one
		took := map[string][]time.Duration{}
		for range tries {
			for name, f := range forgeries {
				start := time.Now()
				_, err := a.PrepareImport(ctx, f)
				took[name] = append(took[name], time.Since(start))
				if err != ErrVerification {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		least, most := time.Hour, time.Duration(0)
		for name, d := range took {
			m := median(d)
			least, most = min(least, m), max(most, m)
			t.Logf("%-24s median of %d: %v", name, tries, m)
		}
		if spread = most - least; spread <= timingBound {
			return
		}
	}
	t.Errorf("medians differ by %v", spread)
}

// R16, R11: Open in a context that has ended touches nothing.
func TestR76_OpenWithEndedContext(t *testing.T) {
	base := tempDir(t)
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err := Open(done, filepath.Join(base, "authority"), Options{Create: true})
	wantErr(t, err, context.Canceled)
	if entries, err := os.ReadDir(base); err != nil || len(entries) != 0 {
		t.Errorf("created %v (%v)", entries, err)
	}
}
