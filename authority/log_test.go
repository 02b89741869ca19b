package authority

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
	"github.com/tidemark-log/tidemark/snapshot"
)

// wantLog wants ErrLog of a class, and nothing written since before.
func wantLog(t *testing.T, err error, class string) {
	t.Helper()
	var e *Error
	if !errors.Is(err, ErrLog) || !errors.As(err, &e) || e.Class != class {
		t.Errorf("got %v, want the log refused: %s", err, class)
	}
}

// R35, R95: Suspend and Finish sign only the head of the run's own log, complete,
// durable, with the snapshot's last sequence as its revision, and bind it.
func TestR95_OnlyADurableBoundaryIsSigned(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	token, err := l.Token()
	must(t, err)
	other, err := p.a.Start(ctx, "other")
	must(t, err)
	foreign, err := other.Token()
	must(t, err)
	sign := map[string]func() error{
		"suspend": func() error { _, err := l.Suspend(ctx, snap(t, "run", 7, snapshot.Suspended)); return err },
		"finish":  func() error { _, err := l.Finish(ctx, snap(t, "run", 7, snapshot.Completed)); return err },
	}
	for name, op := range sign {
		before := p.Calls()
		wantLog(t, op(), "none")
		log := logAt(token, 3)
		next, err := l.Continue(log)
		must(t, err)
		if next != 4 {
			t.Errorf("the next commit is %d", next)
		}
		_, err = l.Continue(log)
		wantErr(t, err, ErrState)
		wantLog(t, op(), "position") // behind the snapshot
		log.head.Revision = 7
		wantLog(t, op(), "not durable")
		log.head.Revision, log.durable.Revision = 8, 8
		wantLog(t, op(), "position") // beyond it
		log.head.Revision, log.durable.Revision = 7, 7
		log.head.Digest++
		wantLog(t, op(), "not durable")
		log.head.Digest--
		log.fence = foreign
		wantLog(t, op(), "token")
		log.fence = token
		log.fence.Token++
		wantLog(t, op(), "token")
		if p.Calls() != before {
			t.Errorf("%s wrote", name)
		}
		l.log = nil
	}
	log := logAt(token, 7)
	_, err = l.Continue(log)
	must(t, err)
	must(t, sign["suspend"]())
	if at := l.hold.record.position; at != (position{log.id, 7, 49}) || l.hold.record.claim.sequence != 7 {
		t.Errorf("bound to %+v", at)
	}
}

// R95: after Resume or an import the run goes on in the log that the claim was
// bound to, at its head, or in a fresh one with that point as its base.
func TestR95_ContinuesWhereItWas(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("run") // at revision 7 of log 1
	p := w.boot()
	i, err := p.a.PrepareImport(ctx, e)
	must(t, err)
	at, err := i.Position()
	must(t, err)
	want := cursor.Cursor{Position: cursor.Position{Log: cursor.LogID{1}, Revision: 7}, Digest: 49}
	if at != want {
		t.Errorf("the log was at %v", at)
	}
	must(t, i.Consume(ctx))
	l, err := i.Activate(ctx)
	must(t, err)
	_, err = i.Position()
	wantErr(t, err, ErrClosed)
	token, err := l.Token()
	must(t, err)
	if token.Token != 2 {
		t.Errorf("token %d", token.Token)
	}
	refuse := func(class string, change func(*fakeLog)) {
		t.Helper()
		log := logAt(token, 7)
		change(log)
		_, err := l.Continue(log)
		wantLog(t, err, class)
	}
	refuse("token", func(f *fakeLog) { f.fence.Token-- }) // opened by the holder before
	refuse("position", func(f *fakeLog) { f.head.Revision, f.durable.Revision = 8, 8 })
	refuse("position", func(f *fakeLog) { f.head.Revision, f.durable.Revision = 6, 6 })
	refuse("position", func(f *fakeLog) { f.head.Digest, f.durable.Digest = 1, 1 })
	refuse("position", func(f *fakeLog) { f.id[0]++ })
	refuse("not durable", func(f *fakeLog) { f.durable.Revision = 6 })
	refuse("position", func(f *fakeLog) { f.id[0]++; f.base = want; f.base.Revision-- })
	refuse("position", func(f *fakeLog) { f.id[0]++; f.base = want; f.base.Digest++ })
	refuse("position", func(f *fakeLog) { f.id[0]++; f.base = want; f.base.Log[3]++ })
	refuse("position", func(f *fakeLog) { f.id[0]++; f.base = want; f.head.Revision, f.durable.Revision = 9, 9 })
	fresh := logAt(token, 7)
	fresh.id[0]++
	fresh.base = want
	next, err := l.Continue(fresh)
	must(t, err)
	if next != 8 {
		t.Errorf("the next commit is %d", next)
	}
	// It is the run's log from the next suspension on.
	fresh.head.Revision, fresh.durable.Revision = 9, 9
	_, err = l.Suspend(ctx, snap(t, "run", 9, snapshot.Suspended))
	must(t, err)
	if l.hold.record.position.logID != fresh.id {
		t.Error("bound to the old log")
	}
	// A log that went on while the run was suspended is noticed before Resume.
	before := p.Calls()
	fresh.head.Revision, fresh.durable.Revision = 10, 10
	wantLog(t, l.Resume(ctx), "position")
	if p.Calls() != before {
		t.Error("it wrote")
	}
	fresh.head.Revision, fresh.durable.Revision = 9, 9
	must(t, l.Resume(ctx))
	_, err = l.Continue(fresh) // still under the old token
	wantLog(t, err, "token")
	fresh.fence, err = l.Token()
	must(t, err)
	next, err = l.Continue(fresh)
	must(t, err)
	if next != 10 {
		t.Errorf("the next commit is %d", next)
	}
	must(t, l.Close())
	_, err = l.Continue(fresh)
	wantErr(t, err, ErrClosed)
}

// R95: the name of a run in its log is this run's only.
func TestR95_TokensOfDifferentRunsDiffer(t *testing.T) {
	r := record{runID: "run", transition: 3, nonce: [16]byte{1}, scope: sum32{2}}
	same := r
	same.transition, same.phase, same.sequence = 9, Suspended, 12
	if same.fence().Run != r.fence().Run || same.fence().Token != 9 {
		t.Error("a later holder of the run is another run")
	}
	for _, change := range []func(*record){
		func(r *record) { r.runID = "Run" },
		func(r *record) { r.nonce[15]++ },
		func(r *record) { r.scope[0]++ },
	} {
		o := r
		change(&o)
		if o.fence().Run == r.fence().Run {
			t.Errorf("%+v and %+v share a log", o, r)
		}
	}
}

// R95, R96: a run across two holders and its real log: the first is fenced, the
// second goes on at the next revision, and a fresh log tells old cursors where
// to begin again.
func TestR95_R96_RealLog(t *testing.T) {
	a, dir := tempAuthority(t)
	path := filepath.Join(filepath.Dir(dir), "log")
	l, err := a.Start(ctx, "run")
	must(t, err)
	first, err := l.Token()
	must(t, err)
	log, err := pagelog.Create(path, pagelog.CreateOptions{}, pagelog.Options{Fence: first})
	must(t, err)
	next, err := l.Continue(log)
	must(t, err)
	events(t, log, next, 3)
	s := snap(t, "run", 3, snapshot.Suspended)
	b := eventBatch()
	b.CompleteOnly = true // complete and not durable: no boundary
	_, err = log.Commit(ctx, b)
	must(t, err)
	_, err = l.Suspend(ctx, snap(t, "run", 4, snapshot.Suspended))
	wantLog(t, err, "not durable")
	must(t, log.Sync(ctx))
	_, err = l.Suspend(ctx, s)
	wantLog(t, err, "position")
	e, err := l.Suspend(ctx, snap(t, "run", 4, snapshot.Suspended))
	must(t, err)
	old := log.Cursor(log.Head())
	must(t, log.Close())
	must(t, l.Close())

	i, err := a.PrepareImport(ctx, e)
	must(t, err)
	at, err := i.Position()
	must(t, err)
	if at != old {
		t.Errorf("bound to %v, the log was at %v", at, old)
	}
	must(t, i.Consume(ctx))
	l, err = i.Activate(ctx)
	must(t, err)
	second, err := l.Token()
	must(t, err)
	log, err = pagelog.Open(path, pagelog.Options{Fence: second, Expect: &pagelog.Expect{Revision: at.Revision, Digest: at.Digest}})
	must(t, err)
	_, err = pagelog.Open(path, pagelog.Options{Fence: first})
	wantErr(t, err, pagelog.ErrLocked)
	must(t, log.Close())
	_, err = pagelog.Open(path, pagelog.Options{Fence: first})
	wantErr(t, err, pagelog.ErrFenced)

	fresh, err := pagelog.Create(path+"-2", pagelog.CreateOptions{Base: at}, pagelog.Options{Fence: second})
	must(t, err)
	next, err = l.Continue(fresh)
	must(t, err)
	if next != 5 {
		t.Errorf("the next commit is %d", next)
	}
	events(t, fresh, next, 5)
	for rev := range uint64(4) {
		var gone *cursor.CompactedError
		c := old
		c.Revision = rev
		if _, err := fresh.FromBase(c); !errors.As(err, &gone) || gone.Recovery() != 4 {
			t.Errorf("cursor %d: %v", rev, err)
		}
	}
	if c, err := fresh.FromBase(old); err != nil || c.Revision != 4 || c.Log != fresh.LogID() {
		t.Error(c, err)
	}
	_, err = l.Finish(ctx, snap(t, "run", 5, snapshot.Completed))
	must(t, err)
	must(t, fresh.Close())
}

func eventBatch() *pagelog.Batch {
	b := &pagelog.Batch{}
	b.Add(pagelog.Record{Kind: 1, Data: []byte("event")})
	return b
}

// events commits up to revision last, and wants next to be the first.
func events(t *testing.T, log *pagelog.Log, next, last uint64) {
	t.Helper()
	for ; next <= last; next++ {
		c, err := log.Commit(ctx, eventBatch())
		must(t, err)
		if c.Revision != next {
			t.Fatalf("revision %d, not %d", c.Revision, next)
		}
	}
}
