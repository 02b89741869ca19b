package fuzz

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/pagelog"
)

// maxAlloc bounds what one look at a log of at most maxSize bytes may allocate,
// in bytes: a few windows of 256 KiB, and never what a length in the file says.
// Under the race detector a sync.Pool forgets what it is given, at random, so
// that each look behind the head may allocate a window anew.
const maxAlloc = raceFactor * (8 << 20)

// Every look allocates a few large buffers, and nothing lives.
func init() { debug.SetGCPercent(1600) }

// allocated runs do and fails if it allocated beyond the bound.
func allocated(t *testing.T, what string, do func()) {
	t.Helper()
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	before := s[0].Value.Uint64()
	do()
	metrics.Read(s)
	if n := s[0].Value.Uint64() - before; n > maxAlloc {
		t.Errorf("%s allocates %d bytes for a file of at most %d", what, n, maxSize)
	}
}

// read collects commits until there are no more, or an error.
func read(seq iter.Seq2[*pagelog.Group, error]) (commits []commit, err error) {
	for g, err := range seq {
		if err != nil {
			return commits, err
		}
		var text strings.Builder
		for r, err := range g.Records() {
			if err != nil {
				return commits, err
			}
			text.WriteString(string(r.Data) + "|")
		}
		commits = append(commits, commit{g.Revision, uint64(g.Digest), text.String()})
	}
	return commits, nil
}

// known are the reasons for which a file may be refused.
var known = []error{
	pagelog.ErrCorrupt, pagelog.ErrDiverged, pagelog.ErrUnsupported, pagelog.ErrNotALog, pagelog.ErrCompacted,
}

// refused checks an error about a file: one of those that are documented, with
// a place in the file if it is damage.
func (e *edited) refused(t *testing.T, what string, err error) {
	t.Helper()
	var c *pagelog.CorruptError
	if errors.As(err, &c) {
		isPage := c.Page == c.Offset/e.geo.PageSize() || e.class == forged // then pages may have another size
		if c.Offset < 0 || c.Offset > maxSize || c.What == "" || c.Err == nil || !isPage {
			t.Errorf("%s: damage is not located: %+v", what, c)
		}
		return
	}
	isKnown := func(k error) bool { return errors.Is(err, k) }
	if slices.ContainsFunc(known, isKnown) || e.class == forged && errors.Is(err, pagelog.ErrNotFound) {
		return
	}
	t.Errorf("%s: %v", what, err)
}

// prefix holds commits against what was written. Nothing may be seen that
// nobody committed; after an accident it is a prefix of this very log.
func (e *edited) prefix(t *testing.T, what string, commits []commit) {
	t.Helper()
	for i, c := range commits {
		switch {
		case e.class == forged:
		case !written()[c]:
			t.Errorf("%s: revision %d was never written: %q", what, c.revision, c.records)
		case e.class == accident && (i >= len(e.commits) || c != e.commits[i]):
			t.Errorf("%s: commit %d is %d, which is not what this log holds there", what, i, c.revision)
		}
		if i > 0 && c.revision != commits[i-1].revision+1 {
			t.Errorf("%s: revision %d follows %d", what, c.revision, commits[i-1].revision)
		}
	}
}

// agree reports whether one list begins with all of the other.
func agree(a, b []commit) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// examine looks at an edited log in every way the engine has.
func (e *edited) examine(t *testing.T) {
	w := newWorld(e.b)
	var report pagelog.VerifyReport
	var verr, rerr, oerr error
	var seen, kept []commit
	var l *pagelog.Log
	allocated(t, "verify", func() {
		report, verr = pagelog.VerifyIn(context.Background(), w.env(), logName, pagelog.VerifyOptions{Workers: 1})
	})
	allocated(t, "a reader", func() { seen, rerr = e.reader(t, w) })
	e.prefix(t, "reader", seen)
	if rerr != nil {
		e.refused(t, "reader", rerr)
	}
	if b, _ := w.fs.ReadFile(logName); !bytes.Equal(b, e.b) {
		t.Fatal("looking at a log changed it")
	}
	allocated(t, "open", func() { l, oerr = pagelog.OpenIn(w.env(), logName, pagelog.Options{CheckpointEvery: -1}) })
	if oerr != nil {
		e.refused(t, "open", oerr)
		if b, _ := w.fs.ReadFile(logName); !bytes.Equal(b, e.b) {
			t.Error("a refused open changed the file")
		}
	} else {
		kept = e.opened(t, w, l)
	}
	e.verdicts(t, report, verr, l, oerr)
	if oerr == nil && !agree(seen, kept) {
		t.Errorf("a reader sees %d commits, opening keeps %d, and they are not the same", len(seen), len(kept))
	}
}

func (e *edited) reader(t *testing.T, w *world) ([]commit, error) {
	r, err := pagelog.OpenReaderIn(w.env(), logName, pagelog.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	commits, err := read(r.Commits(r.Oldest() - 1))
	if err == nil {
		_, _, err = r.LastCheckpoint()
		if errors.Is(err, pagelog.ErrNotFound) {
			err = nil
		}
	}
	if err == nil {
		e.lookUp(t, "reader", r, commits)
	}
	return commits, errors.Join(err, r.Close())
}

// lookUp asks for every key of the original, and for one that there is not,
// where all commits can be read. Whatever became of the index, the answer is the
// newest record with that key, or an error that says that the index cannot tell;
// and none but that record's commit is needed for it.
func (e *edited) lookUp(t *testing.T, what string, r *pagelog.Reader, commits []commit) {
	head := uint64(len(commits))
	for key, places := range e.keys {
		got := keyPlace{}
		var err error
		got.revision, got.record, err = r.Lookup([]byte("keys"), []byte(key))
		want := keyPlace{}
		for _, p := range places {
			if p.revision <= head {
				want = p
			}
		}
		switch {
		case errors.Is(err, pagelog.ErrIndexDamaged), e.class != accident && err != nil:
		case e.class == forged:
		case e.class == mixed && got.revision <= head:
		case want == keyPlace{} && errors.Is(err, pagelog.ErrNoKey):
		case err != nil || got != want:
			t.Errorf("%s: key %s leads to %+v, %v; want %+v of %d commits", what, key, got, err, want, head)
		}
	}
	if _, _, err := r.Lookup([]byte("keys"), []byte("none")); err == nil {
		t.Errorf("%s: a key that nobody used is found", what)
	}
}

// opened checks a log that opened for writing.
func (e *edited) opened(t *testing.T, w *world, l *pagelog.Log) []commit {
	rep := l.Report()
	kept, err := read(l.Commits(l.Oldest() - 1))
	if err != nil {
		e.refused(t, "reading what was opened", err)
	}
	e.prefix(t, "open", kept)
	if e.class == accident && rep.End < e.floorOf(e.b) {
		t.Errorf("opened up to %d; %d was acknowledged, and the file proves it", rep.End, e.floorOf(e.b))
	}
	if err == nil {
		e.lookUp(t, "open", l.Reader, kept)
	}
	if err == nil && len(e.keys) > 0 && e.class == accident {
		if rerr := l.Reindex(context.Background()); rerr != nil {
			t.Errorf("rebuilding the index: %v", rerr)
		} else {
			e.lookUp(t, "rebuilt", l.Reader, kept)
		}
	}
	if err == nil && len(kept) > 0 && kept[len(kept)-1].revision != rep.Head {
		t.Errorf("the report says head %d, the last commit is %d", rep.Head, kept[len(kept)-1].revision)
	}
	b := &pagelog.Batch{}
	b.Append([]byte("after"))
	if _, cerr := l.Commit(context.Background(), b); cerr != nil && !errors.Is(cerr, pagelog.ErrTooLarge) {
		t.Errorf("commit behind what was opened: %v", cerr)
		return kept
	} else if cerr == nil {
		rep.Head++
	}
	w.fs.Kill()
	again, err := pagelog.OpenIn(w.env(), logName, pagelog.Options{CheckpointEvery: -1})
	if err != nil {
		// A bridge that rests on a slot alone ends with that slot: then the
		// damage is refused, with its place.
		if e.refused(t, "opening a second time", err); len(rep.Bridged) == 0 {
			t.Errorf("opening a second time: %v", err)
		}
		return kept
	}
	if r := again.Report(); r.Head != rep.Head || r.Torn != 0 {
		t.Errorf("opening a second time: %+v, at first %+v", r, rep)
	}
	return kept
}

var helpers = []string{"page header", "checkpoint", "header area", "slot", "identity"}

// verdicts holds verify against open: they follow the same rules.
func (e *edited) verdicts(t *testing.T, v pagelog.VerifyReport, verr error, l *pagelog.Log, oerr error) {
	if verr != nil {
		e.refused(t, "verify", verr)
		if oerr == nil {
			t.Errorf("verify: %v; but it opens", verr)
		}
		return
	}
	var corrupt, bridged bool
	for _, f := range v.Findings {
		// What only helps to find things does not keep a writer from opening.
		corrupt = corrupt || f.Class == pagelog.ClassCorrupt && !slices.Contains(helpers, f.Structure)
		bridged = bridged || f.Class == pagelog.ClassBridged
		if f.Offset < 0 || f.Offset > maxSize {
			t.Errorf("finding without a place: %+v", f)
		}
	}
	damage := errors.Is(oerr, pagelog.ErrCorrupt) || errors.Is(oerr, pagelog.ErrDiverged)
	switch {
	case oerr != nil && !damage: // what this version may not write, verify may read
	case corrupt && !damage, damage && !v.Corrupt:
		t.Errorf("verify says corrupt: %v; open says %v\n%+v", corrupt, oerr, v)
	case damage:
	case bridged != (len(l.Report().Bridged) > 0):
		t.Errorf("verify says bridged: %v; open %+v\n%+v", bridged, l.Report(), v)
	case v.Head != l.Report().Head || v.End != l.Report().End:
		t.Errorf("verify says head %d, end %d; open %+v", v.Head, v.End, l.Report())
	case v.Torn != (l.Report().Torn > 0):
		t.Errorf("verify says torn: %v; open %+v\n%+v", v.Torn, l.Report(), v)
	}
}
