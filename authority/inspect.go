package authority

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/snapshot"
)

// Info is what a run's files say. It is read without locks: the run may move
// while it is looked at, and what its owner has not synced yet counts.
type Info struct {
	RunID         string // empty for a damaged run
	File          string // SHA-256 of the run ID, in hexadecimal
	Phase         Phase
	Held          bool          // an owner lives, in some process
	Uncertain     bool          // this process never touches the run again
	Generation    uint64        // transition generation
	KeyGeneration uint64        // of the key that signed the newest record
	LastSequence  uint64        // of the newest claim; 0 before the first
	Log           cursor.Cursor // where the run's log was at the newest claim; zero before the first
}

// Inspect tells about one run. ErrState: it was never started.
func (a *Authority) Inspect(ctx context.Context, runID string) (Info, error) {
	const op = "inspect"
	if snapshot.CheckRunID(runID) != nil {
		return Info{}, fail(op, ErrInvalid)
	}
	if err := a.begin(ctx, op); err != nil {
		return Info{}, err
	}
	defer a.finish()
	name := nameOf(runID)
	info, err := a.inspect(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, fail(op, ErrState)
	}
	if err != nil {
		return Info{}, failed(op, ErrUnavailable, err)
	}
	return info, nil
}

// Runs tells about every run, in the order of File; each is verified in full.
// It ends at the first error.
func (a *Authority) Runs(ctx context.Context) iter.Seq2[Info, error] {
	const op = "runs"
	return func(yield func(Info, error) bool) {
		if err := a.begin(ctx, op); err != nil {
			yield(Info{}, err)
			return
		}
		defer a.finish()
		names, err := a.runNames()
		if err != nil {
			yield(Info{}, failed(op, ErrUnavailable, err))
			return
		}
		for some := range slices.Chunk(names, 256) {
			if err := live(ctx, op); err != nil {
				yield(Info{}, err)
				return
			}
			for _, r := range a.inspectAll(some) {
				switch {
				case errors.Is(r.err, fs.ErrNotExist): // gone since it was listed
				case r.err != nil:
					yield(Info{}, failed(op, ErrUnavailable, r.err))
					return
				case !yield(r.info, nil):
					return
				}
			}
		}
	}
}

type inspected struct {
	info Info
	err  error
}

// inspectAll inspects runs on all processors, and answers in order.
func (a *Authority) inspectAll(names []runName) []inspected {
	out := make([]inspected, len(names))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(names)); i = next.Add(1) - 1 {
				out[i].info, out[i].err = a.inspect(names[i])
			}
		})
	}
	workers.Wait()
	return out
}

// runNames lists the runs that have a state file, sorted.
func (a *Authority) runNames() ([]runName, error) {
	names, err := a.dir.Names()
	if err != nil {
		return nil, err
	}
	var runs []runName
	for _, n := range names {
		hash, isRun := strings.CutPrefix(n, runPrefix)
		hash, isState := strings.CutSuffix(hash, stateSuffix)
		if isRun && isState && isRunName(hash) {
			runs = append(runs, runName(hash))
		}
	}
	slices.Sort(runs)
	return runs, nil
}

func isRunName(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func (a *Authority) inspect(name runName) (Info, error) {
	file := stateBuffers.Get().(*[stateSize]byte)
	defer stateBuffers.Put(file)
	info := Info{File: string(name), Phase: Damaged, Uncertain: a.fenced(name)}
	err := a.lock.Range(name.rangeOffset(), securedir.LockProbe)
	if info.Held = errors.Is(err, securedir.ErrLocked); err != nil && !info.Held {
		return Info{}, err
	}
	// The witness first: it can only lag behind a record read later.
	var room sector
	mark, lock, lockErr := a.dir.Read(name.lock(), room[:0], sectorSize)
	_, st, err := a.dir.Read(name.state(), file[:0], stateSize)
	for _, err := range []error{err, lockErr} {
		if err != nil && !refused(err) {
			return Info{}, err
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Info{}, err
	case err != nil, lockErr != nil, st.Size != stateSize:
		return info, nil
	}
	return info, a.withKeys(func(r *ring) error {
		rec, _, ok := r.judgeState(file[:], name)
		w, present := parseWitness(mark, r.witnessKey())
		if !ok || !r.judgeHistory(file[:], &rec) || !judgeWitness(w, present, lock, &rec) {
			return nil
		}
		info.RunID, info.Phase, info.Generation = rec.runID, rec.phase, rec.transition
		info.KeyGeneration, info.LastSequence = rec.generation, rec.claim.sequence
		info.Log = rec.position.cursor()
		return nil
	})
}

// Resolve ends a run whose owner is gone, or that is damaged, as failed or
// cancelled: nothing else is ever made of it. The tombstone is durable on
// return; it has no envelope, and a claim that was out is void. ErrBusy: the
// owner lives. ErrState: there is no such run, or it is over.
func (a *Authority) Resolve(ctx context.Context, runID string, outcome snapshot.Lifecycle) error {
	const op = "resolve"
	if snapshot.CheckRunID(runID) != nil || (outcome != snapshot.Failed && outcome != snapshot.Cancelled) {
		return fail(op, ErrInvalid)
	}
	if err := a.beginChange(ctx, op); err != nil {
		return err
	}
	defer a.finish()
	name := nameOf(runID)
	if a.fenced(name) {
		return fail(op, ErrUncertain)
	}
	if _, err := a.dir.Lookup(name.state()); errors.Is(err, fs.ErrNotExist) {
		return fail(op, ErrState)
	}
	h, err := a.take(name, a.makeLock)
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	defer h.drop()
	next, err := h.tombstone(op, runID, phaseOf(outcome))
	if err != nil {
		return err
	}
	return h.commit(ctx, op, next, nil)
}

// tombstone is the record that ends the held run: the next one of a sound run,
// the first of a new file for a damaged one.
func (h *hold) tombstone(op, runID string, p Phase) (record, error) {
	sound, err := h.load()
	if err != nil && !refused(err) {
		return record{}, failed(op, ErrUnavailable, err)
	}
	if sound {
		if h.record.phase.Terminal() {
			h.testify() // the lock file may be new
			return record{}, fail(op, ErrState)
		}
		// Into a new file: nothing that an earlier writer left in doubt, bytes
		// or names, is relied on.
		next := h.successor(p)
		next.slot = 0
		return next, nil
	}
	if h.state != nil {
		_ = h.state.Close() // it was only read
		h.state = nil
	}
	// Past everything a copy of the run could say. A tombstone stays what it was.
	next := record{
		phase: p, sequence: math.MaxUint64 / 2, transition: math.MaxUint64, runID: runID,
		nonce: h.witness.nonce, claim: recordClaim{sequence: h.record.claim.sequence},
	}
	if h.record.phase.Terminal() {
		next.phase, next.transition, next.claim = h.record.phase, h.record.transition, h.record.claim
	}
	return next, nil
}

// releaseKey makes sure nothing needs a key generation: live runs and damaged
// ones refuse, tombstones are signed again under the primary key.
func (a *Authority) releaseKey(ctx context.Context, generation uint64) error {
	names, err := a.runNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := a.inspect(name)
		if err != nil {
			return err
		}
		needs := info.KeyGeneration == generation
		if info.Phase == Suspended && !needs {
			needs, err = a.claimedUnder(name, generation)
			if err != nil {
				return err
			}
		}
		switch {
		case info.Phase == Damaged, needs && !info.Phase.Terminal():
			return ErrState
		case needs:
			if err := a.signAgain(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Authority) claimedUnder(name runName, generation uint64) (bool, error) {
	file := new([stateSize]byte)
	if _, err := a.readState(name, file); err != nil {
		return false, err
	}
	needs := false
	err := a.withKeys(func(r *ring) error {
		rec, _, ok := r.judgeState(file[:], name)
		needs = !ok || rec.claim.generation == generation
		return nil
	})
	return needs, err
}

// signAgain appends a tombstone's copy under the primary key.
func (a *Authority) signAgain(ctx context.Context, name runName) error {
	const op = "retire key"
	h, err := a.take(name, a.findLock)
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	defer h.drop()
	sound, err := h.load()
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	if !sound || !h.record.phase.Terminal() {
		return ErrState
	}
	next := h.successor(h.record.phase)
	next.claim = h.record.claim
	return h.commit(ctx, op, next, nil)
}
