package authority

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/snapshot"
)

// R109: who only looks takes no lock and writes nothing, also while somebody
// holds the lock of opening for ever; and can change nothing.
func TestR109_LookingTakesNoLock(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("run")
	owner := w.boot()
	release, err := owner.a.alone(ctx)
	must(t, err)
	defer release()

	p := w.process()
	p.Plan(func(c securedir.Call) securedir.Fault {
		switch c.Op {
		case "write", "rename", "unlink", "chmod", "mkdir", "flock", "datasync":
			t.Errorf("%s of %s", c.Op, c.Name)
		}
		return securedir.Fault{}
	})
	soon, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a, err := open(soon, p.env, testPath, Options{ReadOnly: true})
	must(t, err)
	p.a = a
	s, err := a.Verify(ctx, e)
	must(t, err)
	if s.RunID() != "run" {
		t.Error(s.RunID())
	}
	info, err := a.Inspect(ctx, "run")
	must(t, err)
	if info.Phase != Suspended || info.LastSequence != 7 || info.Log.Revision != 7 || info.Log.Digest != 49 {
		t.Errorf("%+v", info)
	}
	runs := 0
	for _, err := range a.Runs(ctx) {
		must(t, err)
		runs++
	}
	keys, err := a.Keys(ctx)
	must(t, err)
	if runs != 1 || len(keys) != 1 || keys[0] != (Key{1, "primary"}) {
		t.Error(runs, keys)
	}
	_, err = a.Start(ctx, "other")
	wantErr(t, err, ErrState)
	_, err = a.PrepareImport(ctx, e)
	wantErr(t, err, ErrState)
	wantErr(t, a.Resolve(ctx, "run", snapshot.Failed), ErrState)
	_, err = a.RotateKey(ctx)
	wantErr(t, err, ErrState)
	wantErr(t, a.RetireKey(ctx, 1), ErrState)
	must(t, a.Close())

	_, err = open(ctx, p.env, testPath, Options{ReadOnly: true, Create: true})
	wantErr(t, err, ErrInvalid)
	_, err = open(ctx, p.env, testPath+"-none", Options{ReadOnly: true})
	wantErr(t, err, ErrUnavailable)
}

// R107, R109: Keys says what each generation may do.
func TestR109_Keys(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	for range 2 {
		_, err := p.a.RotateKey(ctx)
		must(t, err)
	}
	must(t, p.a.RetireKey(ctx, 1))
	keys, err := p.a.Keys(ctx)
	must(t, err)
	want := []Key{{1, "retired"}, {2, "verify-only"}, {3, "primary"}}
	if len(keys) != 3 || keys[0] != want[0] || keys[1] != want[1] || keys[2] != want[2] {
		t.Error(keys)
	}
}
