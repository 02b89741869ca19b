package authority

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/tidemark-log/tidemark/internal/securedir"
)

// loadKeys reads the keyring. Missing is fs.ErrNotExist; anything else that is
// wrong with it is refused and never made good.
func (a *Authority) loadKeys() error {
	b, st, err := a.dir.Read(keysName, nil, ringLimit)
	if err != nil {
		return err
	}
	r, err := newRing(b, st)
	if err != nil {
		return &Error{Op: "open", Class: "damaged keyring", err: ErrUnavailable}
	}
	a.keysMu.Lock()
	defer a.keysMu.Unlock()
	if a.keys != nil {
		if !equal(a.keys.scope, r.scope) {
			r.secret.Destroy()
			return fail("open", ErrRelocated)
		}
		a.keys.secret.Destroy()
	}
	a.keys = r
	return nil
}

func (a *Authority) makeKeys() error {
	b, err := firstRing(a.random, a.dir.Stat())
	if err != nil {
		return err
	}
	err = a.publish(keysName, b)
	clear(b)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := a.dir.Sync(); err != nil {
		return err
	}
	return a.loadKeys()
}

// withKeys runs f with the keyring as it is on disk now: one look at its name
// tells whether another process has replaced it. f must not wait.
func (a *Authority) withKeys(f func(*ring) error) error {
	st, err := a.dir.Lookup(keysName)
	if err != nil {
		return err
	}
	a.keysMu.RLock()
	current := a.keys != nil && a.keys.stat.Same(st)
	a.keysMu.RUnlock()
	if !current {
		// Whoever made it may have died before its name was durable.
		if err := a.dir.Sync(); err != nil {
			return err
		}
		if err := a.loadKeys(); err != nil {
			return err
		}
	}
	return a.knownKeys(f)
}

// knownKeys runs f with the keyring as this process knows it.
func (a *Authority) knownKeys(f func(*ring) error) error {
	a.keysMu.RLock()
	defer a.keysMu.RUnlock()
	return f(a.keys)
}

// keysFence stands for the keyring among the fenced runs: after an uncertain
// change of keys this process signs nothing more.
const keysFence = runName("keys")

func countRuns(names []string) int {
	n := 0
	for _, name := range names {
		// The lock file comes first and stays: it counts the run.
		if strings.HasPrefix(name, runPrefix) && strings.HasSuffix(name, lockSuffix) {
			n++
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, runPrefix) && strings.HasSuffix(name, stateSuffix) && n == 0 {
			return 1 // a run without its lock file is a run
		}
	}
	return n
}

// admit counts a run to come against the quota. The directory is listed only
// when the count known is at the limit; other processes may each have started
// runs since it was last listed.
func (a *Authority) admit(op string) error {
	a.mu.Lock()
	full := a.runs >= a.maxRuns
	a.mu.Unlock()
	if !full {
		return nil
	}
	names, err := a.dir.Names()
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs = countRuns(names)
	if a.runs >= a.maxRuns {
		return fail(op, ErrCapacity)
	}
	return nil
}

// Key is a generation of the keyring, without the key itself.
type Key struct {
	Generation uint64
	Status     string // "primary" signs, "verify-only" verifies, "retired" is gone
}

// Keys lists the generations of the keyring, oldest first.
func (a *Authority) Keys(ctx context.Context) ([]Key, error) {
	const op = "keys"
	if err := a.begin(ctx, op); err != nil {
		return nil, err
	}
	defer a.finish()
	var keys []Key
	err := a.withKeys(func(r *ring) error {
		keys = r.list()
		return nil
	})
	if err != nil {
		return nil, failed(op, ErrUnavailable, err)
	}
	return keys, nil
}

// RotateKey makes a new key that signs from now on, in every process that has
// the directory open; the keys before it still verify. It returns the new
// generation. It waits for other processes that open the directory.
func (a *Authority) RotateKey(ctx context.Context) (uint64, error) {
	const op = "rotate key"
	generation := uint64(0)
	err := a.changeKeys(ctx, op, func() ([]byte, error) {
		var b []byte
		err := a.withKeys(func(r *ring) (err error) {
			b, err = r.rotated(a.random)
			generation = r.primary() + 1
			return err
		})
		return b, err
	})
	if err != nil {
		return 0, err
	}
	return generation, nil
}

// RetireKey forgets a key for good. ErrState: it is the primary, unknown, or
// still needed by a live run, an unconsumed claim or a damaged run. Tombstones
// it signed are first signed again; the terminal envelopes it signed do not
// verify afterwards.
func (a *Authority) RetireKey(ctx context.Context, generation uint64) error {
	const op = "retire key"
	return a.changeKeys(ctx, op, func() ([]byte, error) {
		var b []byte
		err := a.withKeys(func(r *ring) (err error) {
			b, err = r.retired(generation)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := a.releaseKey(ctx, generation); err != nil {
			clear(b)
			return nil, err
		}
		return b, nil
	})
}

// changeKeys replaces the keyring while no other process opens the directory or
// signs anything: a signer holds the keyring's byte shared from choosing its
// key to the barrier of what it signed.
func (a *Authority) changeKeys(ctx context.Context, op string, next func() ([]byte, error)) error {
	if err := a.beginChange(ctx, op); err != nil {
		return err
	}
	defer a.finish()
	release, err := a.alone(ctx)
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	defer release()
	b, err := next()
	switch {
	case errors.Is(err, ErrState):
		return fail(op, ErrState)
	case errors.Is(err, ErrCapacity):
		return fail(op, ErrCapacity)
	case err != nil:
		return failed(op, ErrUnavailable, err)
	}
	defer clear(b)
	guard, err := a.guard()
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	defer func() {
		_ = guard.Range(keysOffset, securedir.Unlock) // a child may hold a copy
		_ = guard.Close()
	}()
	if err := wait(ctx, func() error { return guard.Range(keysOffset, securedir.LockExclusive) }); err != nil {
		return failed(op, ErrUnavailable, err)
	}
	if err := a.replaceKeys(ctx, op, b); err != nil {
		return err
	}
	_ = a.loadKeys() // done all the same: the next operation looks again
	return nil
}

func (a *Authority) replaceKeys(ctx context.Context, op string, b []byte) error {
	f, err := a.stage(b)
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	if err := live(ctx, op); err != nil {
		_ = f.Discard() // never had a name
		return err
	}
	err = f.Replace(keysName)
	if err == nil {
		err = a.dir.Sync()
	}
	if err = errors.Join(err, f.Discard()); err != nil {
		a.fences.add(a.fenceOf(keysFence))
		return failed(op, ErrUncertain, err)
	}
	return nil
}

// finish is end where its error has no one to go to: the directory was only
// read, and every write had its own sync.
func (a *Authority) finish() { _ = a.end() }
