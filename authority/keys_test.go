package authority

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/snapshot"
)

func TestTrap08_R107_Rotation(t *testing.T) {
	w := newWorld(t)
	old := w.suspended("old")
	p, q := w.boot(), w.boot()
	live, err := q.a.Start(ctx, "live")
	must(t, err)
	gen, err := p.a.RotateKey(ctx)
	if must(t, err); gen != 2 {
		t.Fatalf("generation %d", gen)
	}
	if _, err := q.a.Verify(ctx, old); err != nil {
		t.Errorf("an old claim: %v", err)
	}
	e, err := suspend(ctx, live, snap(t, "live", 3, snapshot.Suspended)) // by a process that did not rotate
	if must(t, err); e.Claim().Generation != 2 || live.hold.record.generation != 2 {
		t.Errorf("signed with generation %d", e.Claim().Generation)
	}
	wantErr(t, p.a.RetireKey(ctx, 2), ErrState) // the primary
	wantErr(t, p.a.RetireKey(ctx, 9), ErrState) // unknown
	wantErr(t, p.a.RetireKey(ctx, 1), ErrState) // an unconsumed claim needs it
	i, err := q.a.PrepareImport(ctx, old)
	must(t, err)
	must(t, i.Consume(ctx))
	l, err := i.Activate(ctx)
	must(t, err)
	done, err := finish(ctx, l, snap(t, "old", 9, snapshot.Completed))
	must(t, err)
	must(t, p.a.RetireKey(ctx, 1))
	wantErr(t, p.a.RetireKey(ctx, 1), ErrState)
	for range 2 { // in the process that retired, and in the other
		if _, err := q.a.Verify(ctx, done); err != nil {
			t.Errorf("signed with the primary: %v", err)
		}
		if _, err := q.a.Verify(ctx, old); err != ErrVerification {
			t.Errorf("retired generation: %v", err)
		}
		q = w.boot()
	}
	gen, err = p.a.RotateKey(ctx)
	if must(t, err); gen != 3 {
		t.Errorf("a generation number came back: %d", gen)
	}
}

// Tombstones signed by a key are signed again when it goes; damaged runs and
// live ones hold it.
func TestR107_RetireSignsTombstonesAgain(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "done")
	must(t, err)
	done, err := finish(ctx, l, snap(t, "done", 3, snapshot.Failed))
	must(t, err)
	live, err := p.a.Start(ctx, "live")
	must(t, err)
	_, err = p.a.RotateKey(ctx)
	must(t, err)
	wantErr(t, p.a.RetireKey(ctx, 1), ErrState) // live
	_, err = finish(ctx, live, snap(t, "live", 3, snapshot.Failed))
	must(t, err)
	must(t, p.a.RetireKey(ctx, 1))
	info, err := p.a.Inspect(ctx, "done")
	if must(t, err); info.Phase != Failed || info.KeyGeneration != 2 || info.LastSequence != 3 {
		t.Errorf("%+v", info)
	}
	if _, err := p.a.Verify(ctx, done); err != ErrVerification {
		t.Errorf("the envelope of a retired key: %v", err)
	}
	w.suspended("damaged")
	corrupt(t, p, "damaged")
	_, err = p.a.RotateKey(ctx)
	must(t, err)
	wantErr(t, p.a.RetireKey(ctx, 2), ErrState)
}

func TestR107_KeyringIsBounded(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	for range ringMax - 1 {
		_, err := p.a.RotateKey(ctx)
		must(t, err)
	}
	_, err := p.a.RotateKey(ctx)
	wantErr(t, err, ErrCapacity)
	must(t, p.a.RetireKey(ctx, 5))
	gen, err := p.a.RotateKey(ctx)
	if must(t, err); gen != ringMax+1 {
		t.Errorf("generation %d", gen)
	}
}

// A process that adopts a keyring another one made signs under it; the keyring
// is durable first, whoever died in between.
func TestR107_AdoptedKeyringIsDurable(t *testing.T) {
	w := newWorld(t)
	p, q := w.boot(), w.boot()
	l, err := q.a.Start(ctx, "run")
	must(t, err)
	p.Plan(func(c securedir.Call) securedir.Fault {
		if c.Op == "rename" && c.Name == keysName {
			return securedir.Fault{Kind: securedir.KillAfter}
		}
		return securedir.Fault{}
	})
	if _, err := p.a.RotateKey(ctx); err == nil {
		t.Fatal("not killed")
	}
	e, err := suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
	if must(t, err); e.Claim().Generation != 2 {
		t.Fatalf("generation %d", e.Claim().Generation)
	}
	after := &world{t: t, sim: w.sim.PowerCut(func(int) securedir.Fate { return securedir.Lost })}
	defer after.reap()
	if _, err := after.boot().a.Verify(ctx, e); err != nil {
		t.Errorf("signed under a key that was lost: %v", err)
	}
}

// After an uncertain change of keys this process signs nothing more.
func TestR107_UncertainRotationStopsSigning(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("old")
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	p.failCall("sync", 2, eio) // keyring, directory
	_, err = p.a.RotateKey(ctx)
	wantErr(t, err, ErrUncertain)
	p.Plan(nil)
	_, err = suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
	wantErr(t, err, ErrUncertain)
	_, err = p.a.Start(ctx, "run 2")
	wantErr(t, err, ErrUncertain)
	if _, err := p.a.Verify(ctx, e); err != nil {
		t.Errorf("verifying goes on: %v", err)
	}
	must(t, l.Close())
}

func TestTrap07_T08_LostKeysAreNeverMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.suspended("run")
	p := w.boot()
	unlink(t, p, keysName)
	for range 2 {
		err := w.process().open()
		wantErr(t, err, ErrUnavailable)
	}
	if n := names(t, p.a); slices.Contains(n, keysName) {
		t.Error("the keyring was made again")
	}
	// Nor where only a lock file tells of a run.
	unlink(t, p, nameOf("run").state())
	wantErr(t, w.process().open(), ErrUnavailable)
	// Operations of a process that still has the keys refuse as well.
	_, err := p.a.Start(ctx, "other")
	wantErr(t, err, ErrUnavailable)
}

func TestTrap07_T08_DamagedKeysRefused(t *testing.T) {
	for _, at := range []int64{0, 9, 15, 20, 60, 85, 100, 104, 110, 120, 150} {
		w := newWorld(t)
		p := w.boot()
		f, err := p.a.dir.Open(keysName, securedir.ReadWrite)
		must(t, err)
		b := make([]byte, 1)
		must(t, f.ReadAt(b, at))
		b[0] ^= 0x10
		must(t, f.WriteAt(b, at))
		err = w.process().open()
		wantErr(t, err, ErrUnavailable)
	}
}

// A transition that meets a change of keys waits for it, as long as its context
// allows, and changes nothing when that ends.
func TestR107_TransitionsWaitForAChangeOfKeys(t *testing.T) {
	w := newWorld(t)
	p, q := w.boot(), w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	guard, err := q.a.guard()
	must(t, err)
	must(t, guard.Range(keysOffset, securedir.LockExclusive))
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = suspend(short, l, snap(t, "run", 7, snapshot.Suspended))
	wantErr(t, err, context.DeadlineExceeded)
	done := make(chan error)
	go func() {
		_, err := suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
		done <- err
	}()
	must(t, guard.Close())
	must(t, <-done)
}

// Resolve of a run that is over, whose lock file was unlinked, leaves a lock
// file that knows how far the run came.
func TestT09_ResolveLeavesAWitness(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	e, err := suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
	must(t, err)
	old, _, err := p.a.dir.Read(nameOf("run").state(), nil, stateSize)
	must(t, err)
	_, err = finish(ctx, l, snap(t, "run", 9, snapshot.Completed))
	must(t, err)
	unlink(t, p, nameOf("run").lock())
	wantErr(t, p.a.Resolve(ctx, "run", snapshot.Failed), ErrState)
	f, err := p.a.stage(old)
	must(t, err)
	must(t, f.Replace(nameOf("run").state()))
	must(t, f.Close())
	if _, err := p.a.PrepareImport(ctx, e); err == nil {
		t.Error("a finished run was imported")
	}
	if info, err := p.a.Inspect(ctx, "run"); err != nil || info.Phase != Damaged {
		t.Errorf("%+v %v", info, err)
	}
}

// T13: the maker of the keyring dies before the directory sync; the next Open
// makes the identity durable before it is used.
func TestT13_AdoptedIdentityIsDurable(t *testing.T) {
	w := newWorld(t)
	p := w.process()
	p.Plan(func(c securedir.Call) securedir.Fault {
		if c.Op == "rename" && c.Name == keysName {
			return securedir.Fault{Kind: securedir.KillAfter}
		}
		return securedir.Fault{}
	})
	if p.open() == nil {
		t.Fatal("not killed")
	}
	scope := w.boot().a.keys.scope
	after := &world{t: t, sim: w.sim.PowerCut(func(int) securedir.Fate { return securedir.Lost })}
	defer after.reap()
	if !equal(after.boot().a.keys.scope, scope) {
		t.Error("another identity")
	}
}

// R106: files changed under a live lease stop it before its next write.
func TestR106_ChangedUnderALease(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, q *process){
		"record changed in place": func(t *testing.T, q *process) { corrupt(t, q, "run") },
		"lock file gone":          func(t *testing.T, q *process) { unlink(t, q, nameOf("run").lock()) },
		"state file gone":         func(t *testing.T, q *process) { unlink(t, q, nameOf("run").state()) },
		"authority.lock gone":     func(t *testing.T, q *process) { unlink(t, q, lockName) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p, q := w.boot(), w.boot()
			l, err := p.a.Start(ctx, "run")
			must(t, err)
			change(t, q)
			for range 2 {
				_, err = suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
				wantErr(t, err, ErrLost)
			}
			must(t, l.Close())
		})
	}
}

// A run that moves between the look at its record and the lock is not taken.
func TestR63_MovedBetweenLookAndLock(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("run")
	p, q := w.boot(), w.boot()
	moved := false
	p.Plan(func(c securedir.Call) securedir.Fault {
		if c.Op == "rangelock" && !moved {
			moved = true
			i, err := q.a.PrepareImport(ctx, e)
			must(t, err)
			must(t, i.Consume(ctx))
			l, err := i.Activate(ctx)
			must(t, err)
			must(t, l.Close())
		}
		return securedir.Fault{}
	})
	if _, err := p.a.PrepareImport(ctx, e); err != ErrVerification || !moved {
		t.Errorf("a second consumer: %v", err)
	}
}

// Older records count: one that is no longer what was signed damages the run,
// also where its form is still right.
func TestR108_ChangedHistoryIsDamage(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("run")
	p := w.boot()
	f, err := p.a.dir.Open(nameOf("run").state(), securedir.ReadWrite)
	must(t, err)
	must(t, f.WriteAt([]byte{9}, 263)) // the last sequence in the first record
	must(t, f.Close())
	info, err := p.a.Inspect(ctx, "run")
	if must(t, err); info.Phase != Damaged {
		t.Errorf("%+v", info)
	}
	_, err = p.a.PrepareImport(ctx, e)
	wantErr(t, err, ErrState)
}
