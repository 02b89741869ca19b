package faults_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/lossyfs"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// lossy is a served file system that loses on command.
type lossy struct {
	testing.TB
	server  *lab.Process
	dir     string
	images  string
	ledger  *oracle.Ledger
	moments []moment
}

func newLossy(t testing.TB) *lossy {
	t.Helper()
	lab.Root(t)
	lab.Device(t, "/dev/fuse")
	base := lab.Scratch(t)
	l := &lossy{TB: t, dir: filepath.Join(base, "mnt"), images: filepath.Join(base, "images"), ledger: oracle.New()}
	if err := errors.Join(os.Mkdir(l.dir, 0o755), os.Mkdir(l.images, 0o755)); err != nil {
		t.Fatal(err)
	}
	l.server = lab.Start(t, lab.Faultd(), "lossy", l.dir)
	if line, err := l.server.Hear(); err != nil || line != "ready" {
		l.server.Kill()
		t.Fatalf("serve: %q, %s", line, l.server.Stderr())
	}
	lab.UnmountAfter(t, l.dir)
	l.moments = []moment{{0, l.ledger.Clone()}}
	return l
}

func (l *lossy) log() string { return filepath.Join(l.dir, "run.log") }

func (l *lossy) position() int {
	l.Helper()
	n, err := strconv.Atoi(l.server.Ask("pos"))
	if err != nil {
		l.Fatal(err)
	}
	return n
}

// live runs a victim to its end, notes what is promised from when on, and
// returns its exit code.
func (l *lossy) live(script string, flags ...string) int {
	l.Helper()
	p := lab.Start(l, append(append([]string{lab.Victim(), "-any"}, flags...), l.log(), script)...)
	for {
		line, err := p.Hear()
		if err != nil {
			break
		}
		if line == "waiting" {
			if err := p.Say("go"); err != nil {
				l.Fatal(err)
			}
			continue
		}
		if err := l.ledger.HearLine(line); err != nil {
			l.Fatal(err)
		}
		l.moments = append(l.moments, moment{l.position(), l.ledger.Clone()})
	}
	exit := p.Wait()
	if exit == 9 || exit == 1 || exit == 3 {
		l.Fatalf("exit code %d: %s", exit, p.Stderr())
	}
	return exit
}

// promised is what was promised at a cut.
func promised(moments []moment, cut int) *oracle.Ledger {
	i := 0
	for i+1 < len(moments) && moments[i+1].position <= cut {
		i++
	}
	l := moments[i].ledger.Clone()
	for _, later := range moments[i:] {
		l.MayFollow(later.ledger)
	}
	return l
}

// lose takes the power away after cut operations and looks at what is left.
func (l *lossy) lose(cut, seed int, mode lossyfs.Mode) error {
	dir := filepath.Join(l.images, fmt.Sprint(cut, "-", seed, "-", mode))
	l.server.Ask("image %d %d %s %s", cut, seed, mode, dir)
	ledger := promised(l.moments, cut)
	groups, err := oracle.Recover(filepath.Join(dir, "run.log"), pagelog.Options{})
	if errors.Is(err, fs.ErrNotExist) && ledger.MayBeMissing() {
		err = nil
	}
	if err == nil {
		err = ledger.Check(groups, oracle.PowerCut)
	}
	if err == nil {
		// Whatever creation left behind does not stop the next one.
		out := lab.Execute(l, "", lab.Tidemark(), "append", filepath.Join(dir, "run.log"))
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); out.Exit != 0 || len(groups) == 0 && len(left) > 0 {
			err = fmt.Errorf("append: exit code %d, left behind %q: %s", out.Exit, left, out.Stderr)
		}
	}
	if err != nil {
		return fmt.Errorf("loss after operation %d, seed %d, %s: %w", cut, seed, mode, err)
	}
	return os.RemoveAll(dir)
}

// TestLossy_C26 loses everything that was not synced, names apart from data, at
// every moment of a log's life, creation above all.
func TestLossy_C26(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	for i, script := range []string{"dccScd", "cdwKdRc", "ddd"} {
		if exit := l.live(script, "-try", strconv.Itoa(i*100), "-size", "2000"); exit != 0 {
			t.Fatalf("exit code %d", exit)
		}
	}
	end, n := l.position(), 0
	seeds := lab.Pick(1, 12)
	for cut := 0; cut <= end; cut++ {
		for _, mode := range []lossyfs.Mode{lossyfs.Drop, lossyfs.Keep, lossyfs.Journal, lossyfs.Strict} {
			for seed := range seeds {
				if n++; mode == lossyfs.Drop || mode == lossyfs.Keep {
					if seed > 0 {
						n--
						continue // the seed decides nothing
					}
				}
				if err := l.lose(cut, seed, mode); err != nil {
					t.Error(err)
				}
			}
		}
	}
	lab.Count("images of a lossy file system", n)
	t.Logf("%d images of %d operations, %d commits", n, end, l.ledger.Durable())
}

// TestLossy_FailedSync_C22 lets each sync fail once, of file and folder, and
// loses what was not synced after the next writer has acknowledged more.
func TestLossy_FailedSync_C22(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		l := newLossy(t)
		l.server.Ask("fail-sync %d", n)
		exit := l.live("dcdScd", "-try", "0")
		if exit == 0 {
			break // it has no such sync
		}
		if again := l.live("dd", "-try", "100"); again != 0 {
			t.Errorf("sync %d failed once, exit code %d, and the next writer ended with %d", n, exit, again)
		}
		end := l.position()
		for seed, mode := range []lossyfs.Mode{lossyfs.Drop, lossyfs.Journal, lossyfs.Strict} {
			if err := l.lose(end, seed, mode); err != nil {
				t.Errorf("sync %d failed once: %v", n, err)
			}
		}
		lab.Count("failed syncs of a lossy file system", 1)
	}
}

// TestLossy_Writes lets single writes be short or find no room.
func TestLossy_Writes(t *testing.T) {
	t.Parallel()
	for n := 1; n <= lab.Pick(6, 14); n++ {
		for _, fault := range []string{"short", "no-room"} {
			l := newLossy(t)
			l.server.Ask("%s %d", fault, n)
			exit := l.live("dcdScd", "-try", "0")
			if fault == "short" && exit != 0 {
				t.Errorf("a short write %d: exit code %d", n, exit)
			}
			l.server.Ask("%s 0", fault) // if it had no such write
			if again := l.live("dd", "-try", "100"); again != 0 {
				t.Errorf("%s %d: the next writer ended with %d", fault, n, again)
			}
			if err := l.lose(l.position(), n, lossyfs.Strict); err != nil {
				t.Errorf("%s %d: %v", fault, n, err)
			}
			lab.Count("failed writes of a lossy file system", 1)
		}
	}
}

// TestLossy_Control is the proof of the proof: a file system whose syncs lie
// must be seen to lose what was acknowledged.
func TestLossy_Control(t *testing.T) {
	t.Parallel()
	l := newLossy(t)
	l.live("d", "-try", "0")
	l.server.Ask("lie 1")
	l.live("ddd", "-try", "100")
	if err := l.lose(l.position(), 0, lossyfs.Drop); err == nil {
		t.Error("syncs lied, and nothing was lost: this test can see nothing")
	} else {
		t.Logf("as it must: %v", err)
	}
	lab.Count("lying syncs caught", 1)
}
