package fork_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/simdisk"
	"github.com/tidemark-log/tidemark/pagelog"
)

var ctx = context.Background()

// dice gives the same bytes in every run.
type dice struct{ state uint64 }

func (d *dice) Read(p []byte) (int, error) {
	for i := range p {
		d.state = d.state*6364136223846793005 + 1442695040888963407
		p[i] = byte(d.state >> 56)
	}
	return len(p), nil
}

// world is a simulated directory of logs.
type world struct {
	t    testing.TB
	fs   *simdisk.FS
	dice dice
	now  atomic.Int64
}

func newWorld(t testing.TB) *world { return &world{t: t, fs: simdisk.New()} }

// on is the same world on another disk, as after a power cut.
func (w *world) on(img *simdisk.FS) *world { return &world{t: w.t, fs: img, dice: w.dice} }

func (w *world) env() pagelog.Env {
	return pagelog.Env{Dir: w.fs.Dir(), Random: &w.dice, Now: func() int64 { return w.now.Add(1) }, Idle: -1}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(name string, c pagelog.CreateOptions) *pagelog.Log {
	w.t.Helper()
	l, err := pagelog.CreateIn(w.env(), name, c, pagelog.Options{})
	w.must(err)
	return l
}

func (w *world) open(name string) *pagelog.Log {
	w.t.Helper()
	l, err := pagelog.OpenIn(w.env(), name, pagelog.Options{})
	w.must(err)
	return l
}

func (w *world) bytes(name string) []byte {
	w.t.Helper()
	b, err := w.fs.ReadFile(name)
	w.must(err)
	return b
}

// fork forks a log as another process does.
func (w *world) fork(from, to string, o fork.Options) (fork.Made, error) {
	w.t.Helper()
	r, err := pagelog.OpenReaderIn(w.env(), from, pagelog.ReaderOptions{Durable: true})
	w.must(err)
	defer r.Close()
	return fork.CreateIn(ctx, r, w.env(), to, o)
}

func (w *world) forked(from, to string, at uint64) fork.Made {
	w.t.Helper()
	made, err := w.fork(from, to, fork.Options{At: at})
	w.must(err)
	return made
}

// commit commits one record of n bytes that depend on seed.
func commit(t testing.TB, l *pagelog.Log, seed, n int) pagelog.Commit {
	t.Helper()
	var b pagelog.Batch
	b.Append(payload(seed, n))
	c, err := l.Commit(ctx, &b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func payload(seed, n int) []byte {
	b := make([]byte, n)
	d := dice{uint64(seed)}
	_, _ = d.Read(b)
	return b
}

// entry is a commit as a reader saw it.
type entry struct {
	digest cursor.Digest
	data   string
}

// history reads all commits of a log, by revision.
func (w *world) history(name string) map[uint64]entry {
	w.t.Helper()
	r, err := pagelog.OpenReaderIn(w.env(), name, pagelog.ReaderOptions{})
	w.must(err)
	defer r.Close()
	return historyOf(w.t, r)
}

func historyOf(t testing.TB, r *pagelog.Reader) map[uint64]entry {
	t.Helper()
	all := map[uint64]entry{}
	for g, err := range r.Commits(r.Oldest() - 1) {
		if err != nil {
			t.Fatal(err)
		}
		var data bytes.Buffer
		for rec, err := range g.Records() {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&data, "%d:%s;", rec.Kind, rec.Data)
		}
		all[g.Revision] = entry{g.Digest, data.String()}
	}
	return all
}

// sound verifies every byte of a log.
func (w *world) sound(name string) pagelog.VerifyReport {
	w.t.Helper()
	r, err := pagelog.VerifyIn(ctx, w.env(), name, pagelog.VerifyOptions{Workers: 1})
	w.must(err)
	if len(r.Findings) > 0 {
		w.t.Fatalf("%s: %+v", name, r.Findings)
	}
	return r
}

// follows fails unless fork is the history of source up to a revision and one
// fork record.
func (w *world) follows(source map[uint64]entry, name string, made fork.Made) {
	w.t.Helper()
	got := w.history(name)
	if len(got) != int(made.Commits)+1 {
		w.t.Fatalf("%s has %d commits, want %d and a fork record", name, len(got), made.Commits)
	}
	for rev := made.Oldest; rev <= made.Revision; rev++ {
		if got[rev] != source[rev] {
			w.t.Fatalf("%s: revision %d is another commit", name, rev)
		}
	}
	rec := got[made.Revision+1].data
	want := fork.Record{Source: made.Source, Revision: made.Revision, Digest: made.Digest, End: made.Boundary}
	if rec != fmt.Sprintf("%d:%s;", uint32(frame.KindFork), want.Encode()) {
		w.t.Fatalf("%s: the first commit is %q", name, rec)
	}
	if made.Head != made.Revision+1 || made.First != got[made.Head].digest {
		w.t.Fatalf("%+v", made)
	}
	w.sound(name)
}

// names lists a directory without what creations left behind.
func (w *world) has(name string) bool {
	_, err := w.fs.ReadFile(name)
	return err == nil
}

// ends closes a log.
func ends(t testing.TB, l *pagelog.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func wants(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%v, want %v", err, target)
	}
}
