package faults_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// place is a folder in which space runs out and comes back.
type place struct {
	testing.TB
	name  string
	dir   string
	fill  func(p *place)          // leaves no room
	free  func(p *place)          // gives some back
	limit func(p *place, pid int) // applies to a process, if not nil
	// copies: overwriting needs room, so that opening may be rejected, and a
	// commit may be uncertain where it would else be rejected.
	copies bool
}

func (p *place) log() string { return filepath.Join(p.dir, "run.log") }

func (p *place) filler() string { return filepath.Join(p.dir, "filler") }

// fillUp takes every byte there is.
func fillUp(p *place) {
	p.Helper()
	f, err := os.OpenFile(p.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		p.Fatal(err)
	}
	defer f.Close()
	for size := 256 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			p.Fatal(err)
		}
		_ = f.Sync() // may say it, too
	}
}

func removeFiller(p *place) {
	p.Helper()
	if err := os.Remove(p.filler()); err != nil {
		p.Fatal(err)
	}
	unix.Sync()
}

// places lists where space runs out. Each is made when its test begins.
func places() map[string]func(t testing.TB) *place {
	return map[string]func(t testing.TB) *place{
		"tmpfs": func(t testing.TB) *place {
			lab.Root(t)
			dir := lab.Scratch(t)
			if err := unix.Mount("faults", dir, "tmpfs", 0, "size=6m"); err != nil {
				t.Fatal(err)
			}
			lab.UnmountAfter(t, dir)
			return &place{dir: dir, fill: fillUp, free: removeFiller}
		},
		"ext4 blocks": func(t testing.TB) *place {
			dir, _ := lab.Ext4.New(t, 10<<20, "-m", "0", "-b", "4096")
			return &place{dir: dir, fill: fillUp, free: removeFiller}
		},
		"ext4 without journal, small blocks": func(t testing.TB) *place {
			dir, _ := lab.Ext4.New(t, 8<<20, "-m", "0", "-b", "1024", "-O", "^has_journal")
			return &place{dir: dir, fill: fillUp, free: removeFiller}
		},
		"xfs blocks": func(t testing.TB) *place {
			dir, _ := lab.XFS.New(t, lab.XFS.MB<<20)
			return &place{dir: dir, fill: fillUp, free: removeFiller}
		},
		"btrfs quota":     btrfsQuota,
		"file size limit": fileSizeLimit,
	}
}

// btrfsQuota is a subvolume with a limit: EDQUOT.
func btrfsQuota(t testing.TB) *place {
	btrfs := lab.Program(t, "btrfs")
	dir, _ := lab.Btrfs.New(t, lab.Btrfs.MB<<20)
	sub := filepath.Join(dir, "sub")
	run := func(t testing.TB, args ...string) string {
		t.Helper()
		out, err := exec.Command(btrfs, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run(t, "quota", "enable", dir)
	run(t, "subvolume", "create", sub)
	group := "0/" + run(t, "inspect-internal", "rootid", sub)
	// The limit is set from outside of the group, which may be at its limit.
	limit := func(p *place, size string) { run(p, "qgroup", "limit", size, group, dir) }
	limit(&place{TB: t}, "3M")
	return &place{
		dir: sub, fill: fillUp, copies: true,
		free: func(p *place) { limit(p, "30M") },
	}
}

// fileSizeLimit is EFBIG for one process.
func fileSizeLimit(t testing.TB) *place {
	set := func(p *place, pid int, size uint64) {
		p.Helper()
		l := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &l, nil); err != nil {
			p.Fatal(err)
		}
	}
	var writer int
	return &place{
		dir:  lab.Scratch(t),
		fill: func(*place) {},
		limit: func(p *place, pid int) {
			info, err := os.Stat(p.log())
			if err != nil {
				p.Fatal(err)
			}
			writer = pid
			set(p, pid, uint64(info.Size())+100<<10)
		},
		free: func(p *place) { set(p, writer, unix.RLIM_INFINITY) },
	}
}

// TestFull_C28_C29 fills every place under a writer. The commit that finds no
// room is rejected and never seen; everything before it can be read, verified
// and opened with nothing free; and when space comes back the writer goes on
// without opening again.
func TestFull_C28_C29(t *testing.T) {
	for name, make := range places() {
		for _, size := range []string{"700", "40000", "300000"} {
			t.Run(name+", "+size+" bytes", func(t *testing.T) {
				t.Parallel()
				p := make(t)
				p.TB, p.name = t, name
				p.run(size)
				lab.Count("full disks", 1)
			})
		}
	}
}

func (p *place) run(size string) {
	ledger := oracle.New()
	// The first limit must let the log be made and a commit in.
	w := lab.Start(p, lab.Victim(), "-wait-rejected", "-forever", "-size", size, p.log(), "dwdcd")
	p.hear(w, ledger, "waiting")
	if p.limit != nil {
		p.limit(p, w.Cmd.Process.Pid)
	}
	p.fill(p)
	p.say(w)
	rejections := 0
	for range 3 {
		rejections += p.untilFull(w, ledger)
		p.checkFull(ledger)
		p.say(w)
	}
	if rejections == 0 && !p.copies {
		p.Fatal("nothing was ever rejected")
	}
	p.free(p)
	p.goOn(w, ledger, rejections)
	lab.Count("rejections for want of space", rejections)
}

// goOn waits for three more commits of a writer that got space back, kills it
// and compares.
func (p *place) goOn(w *lab.Process, ledger *oracle.Ledger, rejections int) {
	p.Helper()
	head := ledger.Complete()
	for lines := 0; ledger.Durable() < head+3; lines++ {
		line, err := w.Hear()
		if err != nil {
			if p.copies && rejections == 0 {
				break // the writer ended as uncertain: it must be opened again
			}
			p.Fatalf("the writer ended with %d, though space came back: %s", w.Wait(), w.Stderr())
		}
		if lines == 100 {
			p.Fatalf("space came back, and the writer is stuck at revision %d: %q", ledger.Complete(), line)
		}
		if line == "waiting" {
			p.say(w)
		}
		if err := ledger.HearLine(line); err != nil {
			p.Fatal(err)
		}
	}
	_ = w.Cmd.Process.Kill() // it never ends by itself
	if err := ledger.Hear(w.HearAll()); err != nil {
		p.Fatal(err)
	}
	w.Wait()
	groups, err := oracle.Recover(p.log(), pagelog.Options{})
	if err == nil {
		err = ledger.Check(groups, oracle.Death)
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) say(w *lab.Process) {
	_ = w.Say("go") // it may have ended
}

func (p *place) hear(w *lab.Process, l *oracle.Ledger, until string) {
	p.Helper()
	for {
		line, err := w.Hear()
		if err != nil {
			p.Fatalf("the writer ended with %d: %s", w.Wait(), w.Stderr())
		}
		if err := l.HearLine(line); err != nil {
			p.Fatal(err)
		}
		if line == until {
			return
		}
	}
}

// untilFull lets the writer go on until a commit is rejected and returns 1; 0
// if it ended as uncertain, where that is allowed.
func (p *place) untilFull(w *lab.Process, l *oracle.Ledger) int {
	p.Helper()
	for rejected := false; ; {
		line, err := w.Hear()
		if err != nil {
			exit := w.Wait()
			if p.copies && exit == 4 && (strings.Contains(w.Stderr(), "outcome unknown") || strings.Contains(w.Stderr(), "poisoned")) {
				return 0 // also by a slot that idleness wrote
			}
			p.Fatalf("the writer ended with %d: %s", exit, w.Stderr())
		}
		if err := l.HearLine(line); err != nil {
			p.Fatal(err)
		}
		switch {
		case line == "waiting" && rejected:
			return 1
		case line == "waiting":
			p.say(w)
		}
		rejected = strings.HasPrefix(line, "reject ")
	}
}

// checkFull looks at the log with nothing free: every way to read works.
func (p *place) checkFull(l *oracle.Ledger) {
	p.Helper()
	out := lab.Execute(p, "", lab.Tidemark(), "cat", "--json", p.log()).Want(p, 0)
	groups, err := oracle.FromCat(strings.NewReader(out.Stdout))
	if err == nil {
		err = l.Check(groups, oracle.Death)
	}
	if err != nil {
		p.Fatal(err)
	}
	lab.Execute(p, "", lab.Tidemark(), "verify", p.log()).Want(p, 0)
	lab.Execute(p, "", lab.Tidemark(), "stat", p.log()).Want(p, 0)
}

// TestFull_Open_C29 opens, reads and creates with nothing free.
func TestFull_Open_C29(t *testing.T) {
	for name, make := range places() {
		if name == "file size limit" {
			continue // it is one process's, and no full disk
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := make(t)
			p.TB = t
			ledger := oracle.New()
			w := lab.Start(t, lab.Victim(), "-forever", p.log(), "dccdwc")
			p.hear(w, ledger, "waiting")
			w.Kill() // so that opening has something to do
			p.fill(p)
			p.openFull(ledger)
			p.fill(p) // opening gave back what was written ahead
			out := lab.Execute(t, "line\n", lab.Tidemark(), "append", "--ack", filepath.Join(p.dir, "other.log"))
			if out.Exit != 4 || out.Stdout != "" || !strings.Contains(out.Stderr, "no space") {
				t.Errorf("creating with nothing free: exit code %d, said %q: %s", out.Exit, out.Stdout, out.Stderr)
			}
			if left, err := filepath.Glob(filepath.Join(p.dir, ".other*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
			p.free(p)
			more := fmt.Sprintf("%d\n", ledger.Complete()+1)
			if out := lab.Execute(t, "line\n", lab.Tidemark(), "append", "--ack", p.log()).Want(t, 0); out.Stdout != more {
				t.Errorf("after space came back: said %q, want %q", out.Stdout, more)
			}
			lab.Count("full disks", 1)
		})
	}
}

// openFull opens the log for writing with nothing free: recovery needs no room
// but where overwriting does, and there it is a rejection that can be repeated.
func (p *place) openFull(l *oracle.Ledger) {
	p.Helper()
	p.checkFull(l)
	for range 2 {
		out := lab.Execute(p, "", lab.Tidemark(), "append", "--ack", p.log())
		if out.Exit != 0 && !(p.copies && (out.Exit == 4 || out.Exit == 2)) {
			p.Errorf("opening with nothing free: exit code %d: %s", out.Exit, out.Stderr)
		}
		p.checkFull(l)
	}
}

// TestFull_Inodes_C29 runs out of names: no log is left in half, and those that
// are there go on.
func TestFull_Inodes_C29(t *testing.T) {
	t.Parallel()
	dir, _ := lab.Ext4.New(t, 4<<20, "-N", "32", "-m", "0", "-O", "^has_journal")
	made := 0
	for ; made < 100; made++ {
		out := lab.Execute(t, "", lab.Tidemark(), "create", filepath.Join(dir, strconv.Itoa(made)))
		if out.Exit == 0 {
			continue
		}
		if out.Exit != 4 || !strings.Contains(out.Stderr, "no space") {
			t.Errorf("exit code %d: %s", out.Exit, out.Stderr)
		}
		break
	}
	if made == 0 || made == 100 {
		t.Fatalf("%d logs were made", made)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != made+1 { // lost+found
		t.Errorf("%d logs, %d names, %v", made, len(entries), err)
	}
	if out := lab.Execute(t, "line\n", lab.Tidemark(), "append", "--ack", filepath.Join(dir, "0")).Want(t, 0); out.Stdout != "1\n" {
		t.Errorf("said %q", out.Stdout)
	}
	lab.Count("full disks", 1)
}
