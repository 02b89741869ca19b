package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/pagelog"
)

// forkSize is how much the logs hold that are forked here.
const forkSize = 96 << 20

// grown writes a log of forkSize bytes that no file system can store in less.
func grown(t testing.TB, path string) {
	t.Helper()
	l, err := pagelog.Create(path, pagelog.CreateOptions{}, pagelog.Options{ZeroAhead: pagelog.ZeroAheadOff})
	if err != nil {
		t.Fatal(err)
	}
	text := oracle.Text(oracle.Attempt{Revision: 1}, 0, 1, 1<<20)
	for range forkSize >> 20 {
		var b pagelog.Batch
		b.CompleteOnly = true
		b.Append([]byte(text))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.Sync(context.Background()), l.Close()); err != nil {
		t.Fatal(err)
	}
}

// used returns how many bytes the file system of dir holds, once all that was
// written is there.
func used(t testing.TB, dir string) int64 {
	t.Helper()
	unix.Sync()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize
}

// forked forks a log, checks every byte of the fork, and returns how long the
// fork took.
func forked(t testing.TB, from, to string, o fork.Options) (fork.Made, time.Duration) {
	t.Helper()
	begun := time.Now()
	made, err := fork.Create(context.Background(), from, to, o)
	took := time.Since(begun)
	if err != nil {
		t.Fatal(err)
	}
	if made.Shared+made.Copied+made.Holes != made.Bytes {
		t.Errorf("of %d bytes %d are shared, %d copied, %d holes", made.Bytes, made.Shared, made.Copied, made.Holes)
	}
	r, err := pagelog.Verify(context.Background(), to, pagelog.VerifyOptions{})
	if err != nil || !r.Sound() || r.Head != made.Head {
		t.Fatalf("the fork: head %d, %v, %v", r.Head, r.Findings, err)
	}
	return made, took
}

// copied is how long cp and a sync take.
func copied(t testing.TB, from, to string) time.Duration {
	t.Helper()
	begun := time.Now()
	for _, argv := range [][]string{{"cp", "--reflink=never", from, to}, {"sync", to}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	took := time.Since(begun)
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	return took
}

// TestFork_C35_SharedBlocks: where blocks can be shared, a fork takes next to no
// space and no time, and neither the source's deletion nor what either writes
// later changes the other.
func TestFork_C35_SharedBlocks(t *testing.T) {
	for _, fs := range []lab.FileSystem{lab.XFS, lab.Btrfs} {
		t.Run(fs.Name, func(t *testing.T) {
			dir, _ := fs.New(t, 640<<20)
			from, to := filepath.Join(dir, "run.log"), filepath.Join(dir, "fork.log")
			grown(t, from)
			before := used(t, dir)
			made, took := forked(t, from, to, fork.Options{})
			grew := used(t, dir) - before
			if made.Shared < made.Bytes-1<<20 || grew > 8<<20 {
				t.Errorf("%d of %d bytes are shared, and the file system grew by %d", made.Shared, made.Bytes, grew)
			}
			slow := copied(t, from, filepath.Join(dir, "copy"))
			_, never := forked(t, from, filepath.Join(dir, "copied.log"), fork.Options{NoSharing: true})
			if took > slow/2 && took > 250*time.Millisecond {
				t.Errorf("sharing took %v, cp and a sync %v", took, slow)
			}
			t.Logf("%d MiB: shared in %v, copied in %v, cp --reflink=never and a sync %v; the file system grew by %d KiB; load %s",
				made.Bytes>>20, took, never, slow, grew>>10, load1())
			apart(t, from, to)
			dirty(t, dir)
		})
	}
}

// apart writes to both logs, and deletes the source.
func apart(t testing.TB, from, to string) {
	t.Helper()
	for _, path := range []string{from, to} {
		lab.Execute(t, "more\n", lab.Tidemark(), "append", path).Want(t, 0)
	}
	lab.Execute(t, "", lab.Tidemark(), "verify", from).Want(t, 0)
	if err := os.Remove(from); err != nil {
		t.Fatal(err)
	}
	lab.Execute(t, "", lab.Tidemark(), "verify", to).Want(t, 0)
}

// dirty forks a log whose last commits were never synced: by a stranger, who
// gets what is proven, and by its writer, who syncs first.
func dirty(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, "dirty.log")
	l, err := pagelog.Create(path, pagelog.CreateOptions{}, pagelog.Options{ZeroAhead: pagelog.ZeroAheadOff, MaxUnsynced: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(rev uint64, completeOnly bool) {
		var b pagelog.Batch
		b.CompleteOnly = completeOnly
		b.Append([]byte(oracle.Text(oracle.Attempt{Revision: rev}, 0, 1, 1<<20)))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	for rev := range uint64(16) {
		commit(rev+1, rev > 3)
	}
	made, _ := forked(t, path, filepath.Join(dir, "stranger.log"), fork.Options{})
	if made.Revision >= 16 {
		t.Errorf("a stranger forked at %d, which nobody synced", made.Revision)
	}
	mine, err := fork.CreateFrom(context.Background(), l, filepath.Join(dir, "mine.log"), fork.Options{})
	if err != nil || mine.Revision != 16 || mine.Shared < 8<<20 {
		t.Errorf("its writer forked at %d, %d bytes shared, %v", mine.Revision, mine.Shared, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lab.Execute(t, "", lab.Tidemark(), "verify", filepath.Join(dir, "mine.log")).Want(t, 0)
}

// TestFork_C35_Fallbacks forces the two other ways: the kernel copies where
// blocks cannot be shared, and where it copies neither, as between two kinds of
// file system, bytes are read and written.
func TestFork_C35_Fallbacks(t *testing.T) {
	dir, _ := lab.Ext4.New(t, 640<<20)
	from := filepath.Join(dir, "run.log")
	grown(t, from)
	for _, way := range []struct {
		name, to string
		kernel   bool
	}{
		{"in the kernel", filepath.Join(dir, "fork.log"), true},
		{"read and written", filepath.Join(lab.Scratch(t), "fork.log"), false},
	} {
		before := writes(t)
		made, took := forked(t, from, way.to, fork.Options{})
		calls := writes(t) - before
		if inKernel := calls < made.Bytes/(1<<20); inKernel != way.kernel {
			t.Errorf("%s: %d calls wrote", way.name, calls)
		}
		if made.Shared != 0 || made.Copied < made.Bytes-1<<20 {
			t.Errorf("%s: %d shared, %d copied of %d", way.name, made.Shared, made.Copied, made.Bytes)
		}
		t.Logf("%s: %d MiB by %d calls in %v, load %s", way.name, made.Bytes>>20, calls, took, load1())
		if err := os.Remove(way.to); err != nil {
			t.Fatal(err)
		}
	}
}

// writes returns how many calls of this process wrote to files: reading and
// writing takes one for 256 KiB, the kernel's copying one for 8 MiB.
func writes(t testing.TB) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	_, calls, _ := strings.Cut(string(b), "syscw: ")
	if _, err := fmt.Sscan(calls, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFork_Speed: a fork that copies has at least 0.6 of the speed of cp without
// sharing and a sync of the copy; it checks every byte besides. The best of
// several tries of each counts, since other work disturbs both.
func TestFork_Speed(t *testing.T) {
	const least = 0.6
	dir, _ := lab.Ext4.New(t, 640<<20)
	from, to := filepath.Join(dir, "run.log"), filepath.Join(dir, "new.log")
	grown(t, from)
	ours, theirs := time.Hour, time.Hour
	for try := range 12 {
		theirs = min(theirs, copied(t, from, to))
		begun := time.Now()
		if _, err := fork.Create(context.Background(), from, to, fork.Options{NoSharing: true}); err != nil {
			t.Fatal(err)
		}
		ours = min(ours, time.Since(begun))
		if err := os.Remove(to); err != nil {
			t.Fatal(err)
		}
		if try >= 3 && theirs.Seconds() >= least*ours.Seconds() {
			break
		}
	}
	ratio := theirs.Seconds() / ours.Seconds()
	t.Logf("%d MiB: fork %v, cp --reflink=never and a sync %v: %.2f of its speed, load %s", forkSize>>20, ours, theirs, ratio, load1())
	if ratio < least {
		t.Errorf("%.2f of the speed of cp, at least %.1f was promised", ratio, least)
	}
}

// load1 is the load of the machine in the last minute.
func load1() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(b), " ")
	return load
}
