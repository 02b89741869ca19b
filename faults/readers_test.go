package faults_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
)

const readerCount = 8

// followers starts readers in processes of their own, a quarter of which wait
// for durability.
func followers(t testing.TB, log string) []*follower {
	var all []*follower
	for i := range readerCount {
		argv := []string{"tail", "--follow", "--json", log}
		if i%4 == 3 {
			argv = append(argv, "--durable")
		}
		all = append(all, follow(t, argv...))
	}
	return all
}

// load is a writer under which readers read.
type load struct {
	*testing.T
	dir    string
	writer *lab.Process
	ledger *oracle.Ledger
}

func newLoad(t *testing.T, fs lab.FileSystem) *load {
	t.Helper()
	dir, _ := fs.New(t, max(fs.MB, 160)<<20)
	l := &load{T: t, dir: dir, ledger: oracle.New()}
	lab.Execute(t, "", lab.Tidemark(), "create", l.log()).Want(t, 0)
	l.writer = lab.Start(t, lab.Victim(), "-forever", "-size", "3000", "-checkpoint", "60000", l.log(), "dccccdKcccSd")
	return l
}

func (l *load) log() string { return filepath.Join(l.dir, "run.log") }

// until hears the writer until it has acknowledged so many more commits.
func (l *load) until(commits uint64) {
	l.Helper()
	for goal := l.ledger.Complete() + commits; l.ledger.Complete() < goal; {
		line, err := l.writer.Hear()
		if err != nil {
			l.Fatalf("the writer ended: %s", l.writer.Stderr())
		}
		if err := l.ledger.HearLine(line); err != nil {
			l.Fatal(err)
		}
	}
}

// end hears what the writer says up to the end that it must come to by itself,
// soon, and returns its exit code.
func (l *load) end() int {
	l.Helper()
	// A full pipe may hold some thousand lines from before.
	for left := 20000; ; left-- {
		line, err := l.writer.Hear()
		if err != nil {
			return l.writer.Wait()
		}
		if err := l.ledger.HearLine(line); err != nil {
			l.Fatal(err)
		}
		if left == 0 {
			l.Fatalf("the writer goes on and on; it is at revision %d", l.ledger.Complete())
		}
	}
}

// rest hears what the writer says up to its end and returns its exit code.
func (l *load) rest() int {
	l.Helper()
	if err := l.ledger.Hear(l.writer.HearAll()); err != nil {
		l.Fatal(err)
	}
	return l.writer.Wait()
}

// stop kills the writer and returns what the log then holds.
func (l *load) stop() []oracle.Group {
	l.Helper()
	_ = l.writer.Cmd.Process.Kill() // it never ends by itself
	l.rest()
	groups, err := oracle.Recover(l.log(), readAnythingToWrite)
	if err == nil {
		err = l.ledger.Check(groups, oracle.Death)
	}
	if err == nil {
		err = l.ledger.Settle(groups)
	}
	if err != nil {
		l.Fatal(err)
	}
	return groups
}

// TestReaders_C39 has eight processes follow a writer on a real file system:
// none of them ever sees an in-flight page as damage, and all see everything.
func TestReaders_C39(t *testing.T) {
	for _, fs := range []lab.FileSystem{lab.Ext4, lab.XFS} {
		t.Run(fs.Name, func(t *testing.T) {
			t.Parallel()
			l := newLoad(t, fs)
			readers := followers(t, l.log())
			l.until(uint64(lab.Pick(400, 6000)))
			head := uint64(len(l.stop()))
			for _, f := range readers {
				f.end(l.ledger, head)
			}
			lab.Count("commits compared by readers", int(head)*len(readers))
		})
	}
}

// TestReaders_Copy copies the file of a live log, as backup programs do: the
// copy is a prefix or is called corrupt, and never holds anything else.
func TestReaders_Copy(t *testing.T) {
	for _, fs := range []lab.FileSystem{lab.Ext4, lab.XFS} {
		t.Run(fs.Name, func(t *testing.T) {
			t.Parallel()
			for range lab.Pick(1, 10) { // a log that goes on growing fills the disk with its copies
				copyLive(t, fs)
			}
		})
	}
}

// copyLive copies one live log six times.
func copyLive(t *testing.T, fs lab.FileSystem) {
	l := newLoad(t, fs)
	var copies []string
	for i := range 6 {
		l.until(20)
		to := filepath.Join(l.dir, fmt.Sprintf("copy%d", i))
		copyFile(t, l.log(), to)
		copies = append(copies, to)
	}
	l.stop()
	whole := 0
	for _, path := range copies {
		if l.prefix(path) {
			whole++
		}
	}
	t.Logf("%d of %d copies opened", whole, len(copies))
	lab.Count("copies of a live log", len(copies))
}

// prefix reads a copy and reports whether it was sound.
func (l *load) prefix(path string) bool {
	l.Helper()
	out := lab.Execute(l, "", lab.Tidemark(), "cat", "--json", path)
	if out.Exit != 0 && out.Exit != 1 {
		l.Errorf("%s: exit code %d: %s", path, out.Exit, out.Stderr)
	}
	groups, err := oracle.FromCat(strings.NewReader(out.Stdout))
	if err == nil {
		err = l.ledger.CheckPrefix(groups)
	}
	if err != nil {
		l.Errorf("%s: %v", path, err)
	}
	return out.Exit == 0
}

// copyFile copies in small pieces, so that the file changes meanwhile.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 5000))
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestReaders_C37_C40 pulls the file away from under a writer and eight
// readers. The writer must notice before it acknowledges; nobody dies of a
// signal, nobody shows anything that was not there, and nobody waits in the
// middle of bytes that are gone.
func TestReaders_C37_C40(t *testing.T) {
	for _, fs := range []lab.FileSystem{lab.Ext4, lab.XFS} {
		for name, pull := range map[string]func(l *load){
			"truncated to half": func(l *load) {
				info, err := os.Stat(l.log())
				if err == nil {
					err = os.Truncate(l.log(), info.Size()/2)
				}
				if err != nil {
					l.Fatal(err)
				}
			},
			"truncated to nothing": func(l *load) {
				if err := os.Truncate(l.log(), 0); err != nil {
					l.Fatal(err)
				}
			},
			"removed": func(l *load) {
				if err := os.Remove(l.log()); err != nil {
					l.Fatal(err)
				}
			},
			"replaced": func(l *load) {
				other := filepath.Join(l.dir, "other.log")
				lab.Execute(l, "not of this log\n", lab.Tidemark(), "append", other).Want(l, 0)
				if err := os.Rename(other, l.log()); err != nil {
					l.Fatal(err)
				}
			},
			"restored in place": func(l *load) {
				copyFile(l, filepath.Join(l.dir, "backup"), l.log())
			},
		} {
			t.Run(fs.Name+", "+name, func(t *testing.T) {
				t.Parallel()
				l := newLoad(t, fs)
				readers := followers(t, l.log())
				l.until(60)
				for _, f := range readers {
					f.first()
				}
				backup := filepath.Join(l.dir, "backup")
				copyFile(t, l.log(), backup)
				l.outgrow(backup)
				pull(l)
				l.pulled(readers)
				lab.Count("files pulled away", 1)
			})
		}
	}
}

// outgrow waits until the log is longer than a copy. One of the same length
// that is restored in place is not noticed while the writer lives: nothing that
// it asks for changes. Opening notices.
func (l *load) outgrow(backup string) {
	l.Helper()
	old, err := os.Stat(backup)
	for grown := false; !grown && err == nil; {
		l.until(20)
		var now os.FileInfo
		if now, err = os.Stat(l.log()); err == nil {
			grown = now.Size() >= old.Size()+256<<10
		}
	}
	if err != nil {
		l.Fatal(err)
	}
}

// pulled demands that the writer ends as uncertain, and that the readers showed
// nothing but the truth.
func (l *load) pulled(readers []*follower) {
	l.Helper()
	if exit := l.end(); exit != 4 || !strings.Contains(l.writer.Stderr(), "removed, replaced or shortened") {
		l.Errorf("the writer: exit code %d: %s", exit, l.writer.Stderr())
	}
	for i, f := range readers {
		exit, seen := f.stop()
		if f.p.DiedOf(syscall.SIGTERM) {
			exit = 128 + int(syscall.SIGTERM) // it came while the reader was leaving by itself
		}
		if exit != 128+int(syscall.SIGTERM) && exit != 1 && exit != 2 && exit != 5 {
			l.Errorf("reader %d: exit code %d: %s", i, exit, f.p.Stderr())
		}
		if err := errors.Join(f.err, l.ledger.CheckPrefix(seen)); err != nil {
			l.Errorf("reader %d: %v", i, err)
		}
	}
}

// TestPulled_AtRest_C37 shortens the file of a writer that is between two
// commits, with every fill of its last stretch of zeros: also where the next
// commit makes the file longer again.
func TestPulled_AtRest_C37(t *testing.T) {
	t.Parallel()
	missed := 0
	const most = 40
	for commits := 1; commits <= most; commits++ {
		log := filepath.Join(lab.Scratch(t), "run.log")
		w := lab.Start(t, lab.Victim(), "-size", "3000", log, strings.Repeat("d", commits)+"wd")
		for line := ""; line != "waiting"; {
			var err error
			if line, err = w.Hear(); err != nil {
				t.Fatal(w.Stderr())
			}
		}
		if err := os.Truncate(log, 0); err != nil {
			t.Fatal(err)
		}
		if err := w.Say("go"); err != nil {
			t.Fatal(err)
		}
		said := w.HearAll()
		if exit := w.Wait(); strings.Contains(said, "ack ") {
			missed++
			t.Logf("commit %d into an emptied file: exit code %d, said %q", commits+1, exit, said)
		}
	}
	if missed > 0 {
		t.Errorf("%d of %d times a commit was acknowledged, and everything before it was gone", missed, most)
	}
	lab.Count("files pulled away", most)
}

// first waits until a follower is at work.
func (f *follower) first() {
	f.t.Helper()
	g, ok := <-f.groups
	if !ok {
		f.t.Fatalf("a follower ended at once: %s", f.p.Stderr())
	}
	f.seen = append(f.seen, g)
}

// stop ends a follower, if it has not ended by itself.
func (f *follower) stop() (exit int, seen []oracle.Group) {
	_ = f.p.Cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	f.p.Watch()
	for g := range f.groups {
		f.seen = append(f.seen, g)
	}
	return f.p.Wait(), f.seen
}
