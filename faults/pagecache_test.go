package faults_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// lossyKernels are the file systems that say once that a write was lost.
var lossyKernels = []lab.FileSystem{lab.Ext4, lab.XFS, lab.Btrfs}

// TestLostWrite_C22 lets one write or flush of the block device fail under a
// live writer. The kernel says so once; its next sync says nil, and its page
// cache shows what the disk does not hold. The commit must be uncertain, the
// log poisoned, and what the next writer acknowledges must be on the disk when
// the page cache is gone.
func TestLostWrite_C22(t *testing.T) {
	for _, fs := range lossyKernels {
		t.Run(fs.Name, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= lab.Pick(4, 6); n++ {
				for _, fault := range []string{"fail-write", "fail-flush"} {
					loseOne(t, fs, fault, n)
				}
			}
		})
	}
}

// loseOne lets the n-th write or flush from the middle of a writer's life fail.
func loseOne(t *testing.T, fs lab.FileSystem, fault string, n int) {
	t.Helper()
	d := newDisk(t, fs)
	ledger := oracle.New()
	w := lab.Start(t, lab.Victim(), "-size", "5000", d.log(), "dccddwdcdSdcdd")
	said, waiting := "", false
	for !waiting {
		line, err := w.Hear()
		if err != nil {
			t.Fatal(w.Stderr())
		}
		said, waiting = said+line+"\n", line == "waiting"
	}
	d.server.Ask("%s %d", fault, n)
	if err := w.Say("go"); err != nil {
		t.Fatal(err)
	}
	said += w.HearAll()
	exit := w.Wait()
	if err := ledger.Hear(said); err != nil {
		t.Fatal(err)
	}
	what := fmt.Sprintf("%s, %s %d", fs.Name, fault, n)
	switch exit {
	case 0, 4:
	case 2: // the file system went read-only
	default:
		t.Fatalf("%s: exit code %d: %s", what, exit, w.Stderr())
	}
	lab.Count("lost writes and flushes", 1)
	goOnAfterLoss(d, ledger, what)
	t.Logf("%s: exit code %d, %d acknowledged", what, exit, ledger.Durable())
}

// goOnAfterLoss lets the next writer acknowledge one commit, throws the page
// cache away, and looks.
func goOnAfterLoss(d *disk, ledger *oracle.Ledger, what string) {
	d.Helper()
	groups, err := oracle.Read(d.log(), pagelog.ReaderOptions{})
	switch {
	case err == nil:
		appendAfterLoss(d, ledger, uint64(len(groups)), what)
	case !errors.Is(err, syscall.EIO): // the file system has shut itself down
		d.Fatalf("%s: %v", what, err)
	}
	lab.Unmount(d, d.dir)
	if err := d.fs.Mount(filepath.Join(d.fuse, "disk"), d.dir); err != nil {
		d.Fatalf("%s: %v", what, err)
	}
	if groups, err = oracle.Recover(d.log(), pagelog.Options{}); err == nil {
		err = ledger.Check(groups, oracle.PowerCut)
	}
	if err != nil {
		d.Errorf("%s: %v", what, err)
	}
	lab.Unmount(d, d.dir)
}

// appendAfterLoss goes on from a head, unless the file system does not write
// any more.
func appendAfterLoss(d *disk, ledger *oracle.Ledger, head uint64, what string) {
	d.Helper()
	more := oracle.Attempt{Revision: head + 1, Try: afterTry}
	out := lab.Execute(d, oracle.Text(more, 0, 1, 500)+"\n", lab.Tidemark(), "append", "--ack", d.log())
	if out.Exit != 0 {
		if !strings.Contains(out.Stderr, "read-only") && !strings.Contains(out.Stderr, "input/output error") {
			d.Fatalf("%s: going on: exit code %d: %s", what, out.Exit, out.Stderr)
		}
		ledger.Offer(more)
		return
	}
	if err := ledger.Open(head); err != nil {
		d.Fatalf("%s: %v", what, err)
	}
	ledger.Offer(more)
	ledger.Ack(more, true)
}

// TestLostWrite_Control is the proof of the proof: a program that takes the
// second sync's nil for an acknowledgement does lose what it acknowledged.
func TestLostWrite_Control(t *testing.T) {
	t.Parallel()
	for _, fs := range lossyKernels {
		d := newDisk(t, fs)
		f, err := os.Create(d.log())
		if err != nil {
			t.Fatal(err)
		}
		write := func(c string) {
			t.Helper()
			if _, err := f.WriteAt([]byte(strings.Repeat(c, 8192)), 0); err != nil {
				t.Fatal(err)
			}
		}
		write("a")
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		unix.Sync()
		write("b")
		d.server.Ask("fail-write 1")
		first := unix.Fdatasync(int(f.Fd()))
		second := unix.Fdatasync(int(f.Fd()))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		lab.Unmount(t, d.dir)
		if err := fs.Mount(filepath.Join(d.fuse, "disk"), d.dir); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(d.log())
		if err != nil {
			t.Fatal(err)
		}
		lab.Unmount(t, d.dir)
		t.Logf("%s: the first sync said %v, the second %v, the disk holds %q", fs.Name, first, second, b[:1])
		if first == nil || second != nil || b[0] != 'a' {
			t.Errorf("%s does not lose writes any more: this test can see nothing", fs.Name)
		}
	}
}

// shutdown is FS_IOC_SHUTDOWN without a flush of the journal.
const (
	shutdown        = 0x8004587d
	shutdownNoFlush = 2
)

// TestShutdown stops a file system dead under a live writer. What was
// acknowledged before that is there after it was mounted again; a sync that was
// on its way may lie.
func TestShutdown(t *testing.T) {
	for _, fs := range []lab.FileSystem{lab.Ext4, lab.Ext4Journal, lab.XFS} {
		t.Run(fs.Name, func(t *testing.T) {
			t.Parallel()
			dir, image := fs.New(t, fs.MB<<20)
			log := filepath.Join(dir, "run.log")
			ledger := oracle.New()
			for round := range lab.Pick(4, 40) {
				w := lab.Start(t, lab.Victim(), "-forever", "-try", fmt.Sprint(round*10), log, "ddcSdKcd")
				before := shutDown(t, w, dir, ledger, 3+round%11)
				lab.Unmount(t, dir)
				if err := fs.Mount(image, dir); err != nil {
					t.Fatal(err)
				}
				groups, err := oracle.Recover(log, pagelog.Options{})
				if err == nil {
					err = before.Check(groups, oracle.PowerCut)
				}
				if err == nil {
					ledger = before
					err = ledger.Settle(groups)
				}
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				lab.Count("shutdowns", 1)
			}
		})
	}
}

// shutDown lets the writer say some lines, shuts the file system down, and
// returns what was promised before that; what was offered later may be there.
func shutDown(t *testing.T, w *lab.Process, dir string, l *oracle.Ledger, lines int) *oracle.Ledger {
	t.Helper()
	for range lines {
		line, err := w.Hear()
		if err != nil {
			t.Fatalf("the writer ended: %s", w.Stderr())
		}
		if err := l.HearLine(line); err != nil {
			t.Fatal(err)
		}
	}
	before := l.Clone()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(d.Fd()), shutdown, shutdownNoFlush); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Hear(w.HearAll()); err != nil {
		t.Fatal(err)
	}
	if exit := w.Wait(); exit != 4 && exit != 2 {
		t.Fatalf("exit code %d on a dead file system: %s", exit, w.Stderr())
	}
	before.MayFollow(l)
	return before
}
