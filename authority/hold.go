package authority

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/tidemark-log/tidemark/internal/securedir"
)

// hold is a run held under both its locks: what Lease and Import share. It is
// guarded by its owner's mutex.
//
// Invariants: record is the newest record in the state file, as far as this
// process wrote or read it, and raw its bytes; neither changes before the
// barrier of the next one has returned. fate, once set, stays: ErrUncertain
// after a failed commit step, ErrLost after finding the files changed.
type hold struct {
	a       *Authority
	name    runName
	guard   *securedir.File // authority.lock, for the run's byte and the keyring's
	lock    *securedir.File // the run's lock file; also its witness
	state   *securedir.File
	record  record
	raw     sector
	witness witness // as load found it; zero if there was none
	fate    error
	fresh   bool // there is no state file yet
	gone    bool // released
}

// take takes both locks of a run: first its byte in authority.lock, which no
// one can unlink without every holder noticing, then its lock file. Without
// create a missing lock file is an error, and nothing is ever made.
func (a *Authority) take(name runName, lockFile func(runName) (*securedir.File, error)) (*hold, error) {
	h := &hold{a: a, name: name}
	var err error
	if h.guard, err = a.guard(); err != nil {
		return nil, err
	}
	if err = h.guard.Range(name.rangeOffset(), securedir.LockExclusive); err == nil {
		h.lock, err = lockFile(name)
	}
	if err == nil {
		err = h.lock.Lock()
	}
	if err == nil {
		err = h.lock.Check()
	}
	if err != nil {
		h.drop()
		return nil, err
	}
	return h, nil
}

// findLock opens the run's lock file and makes none.
func (a *Authority) findLock(name runName) (*securedir.File, error) {
	return a.dir.Open(name.lock(), securedir.ReadWrite)
}

// newLock is makeLock for a run that is to begin: where there is a state file
// already, a missing lock file stays missing, and the run damaged.
func (a *Authority) newLock(name runName) (*securedir.File, error) {
	f, err := a.findLock(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if _, err := a.dir.Lookup(name.state()); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fail("start", ErrState)
		}
		return nil, err
	}
	return a.makeLock(name)
}

// makeLock opens the run's lock file or makes it: whole, with its exact mode,
// before it has its name, so that no kill and no umask leaves a useless one.
func (a *Authority) makeLock(name runName) (*securedir.File, error) {
	f, err := a.findLock(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := a.publish(name.lock(), make([]byte, sectorSize)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	// Durable before the state file can be: no crash leaves that one alone.
	if err := a.dir.Sync(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.runs++
	a.mu.Unlock()
	return a.findLock(name)
}

// drop releases whatever is held: unlocked before it is closed, so that a
// descriptor that leaked into a child keeps nothing.
func (h *hold) drop() {
	if h.gone {
		return
	}
	h.gone = true
	if h.state != nil {
		_ = h.state.Close() // every write had its own sync
	}
	if h.lock != nil {
		_ = h.lock.Close()
	}
	if h.guard != nil {
		_ = h.guard.Range(h.name.rangeOffset(), securedir.Unlock)
		_ = h.guard.Close()
	}
}

// load reads the state of a held run that someone else may have written, and
// makes it durable before believing it: its writer may have died before its
// own barrier. ok is false for a damaged run.
func (h *hold) load() (ok bool, err error) {
	f, err := h.a.dir.Open(h.name.state(), securedir.ReadWrite)
	if err != nil {
		return false, err
	}
	h.state = f
	if err := f.DataSync(); err != nil {
		return false, err
	}
	if err := h.a.dir.Sync(); err != nil {
		return false, err
	}
	file := make([]byte, stateSize)
	if f.Stat().Size != stateSize {
		return false, nil
	}
	if err := f.ReadAt(file, 0); err != nil {
		return false, err
	}
	mark, err := h.mark()
	if err != nil {
		return false, err
	}
	err = h.a.withKeys(func(r *ring) error {
		rec, s, sound := r.judgeState(file, h.name)
		if sound {
			h.record, h.raw = rec, sector(s)
		}
		w, present := parseWitness(mark, r.witnessKey())
		h.witness = w
		ok = sound && r.judgeHistory(file, &rec) && judgeWitness(w, present, h.lock.Stat(), &rec)
		return nil
	})
	return ok, err
}

// mark is the witness's sector; nil if the lock file has none.
func (h *hold) mark() ([]byte, error) {
	if h.lock.Stat().Size < sectorSize {
		return nil, nil
	}
	mark := make([]byte, sectorSize)
	return mark, h.lock.ReadAt(mark, 0)
}

// commit makes next the newest record. Everything up to the commit step is
// staging: failing there has changed nothing and may be repeated. The commit
// step is one write and one sync, or, when the file is full, one rename and one
// sync; failing there is uncertain for ever.
//
// next has phase, transition and claim; sign, which may be nil, completes it
// with what depends on the key.
func (h *hold) commit(ctx context.Context, op string, next record, sign func(*ring, *record)) error {
	if h.fate != nil {
		return fail(op, h.fate)
	}
	if h.a.fenced(keysFence) {
		return fail(op, ErrUncertain) // no signature under a key that may be lost
	}
	// A change of keys is short: wait for it rather than fail.
	if err := wait(ctx, func() error { return h.guard.Range(keysOffset, securedir.LockShared) }); err != nil {
		return failed(op, ErrUnavailable, err)
	}
	defer func() { _ = h.guard.Range(keysOffset, securedir.Unlock) }() // closing unlocks too
	raw, err := h.a.seal(&next, sign)
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	if next.slot == 0 {
		err = h.replace(ctx, op, raw)
	} else {
		err = h.append(ctx, op, next.slot, raw)
	}
	if err != nil {
		return err
	}
	h.record, h.raw = next, raw
	h.testify()
	return nil
}

// successor is the record after the newest one: same run, next sequence, next
// slot, where slot 0 means a new file.
func (h *hold) successor(p Phase) record {
	next := h.record
	next.phase = p
	next.sequence++
	next.previous = macOf(h.raw[:])
	next.slot = (next.slot + 1) % sectors
	next.claim = recordClaim{sequence: h.record.claim.sequence}
	return next
}

// seal signs a record under the primary key.
func (a *Authority) seal(next *record, sign func(*ring, *record)) (raw sector, err error) {
	err = a.withKeys(func(r *ring) error {
		next.scope, next.generation = r.scope, r.primary()
		if sign != nil {
			sign(r, next)
		}
		var ok bool
		raw, ok = r.sealRecord(next)
		if _, sound := parseRecord(raw[:]); !ok || !sound {
			panic("internal error: sealed a record that cannot be read")
		}
		return nil
	})
	return raw, err
}

// append is the common commit: the next sector, one data sync.
func (h *hold) append(ctx context.Context, op string, slot uint8, raw sector) error {
	if err := h.confirm(op); err != nil {
		return err
	}
	if err := live(ctx, op); err != nil {
		return err
	}
	err := h.state.WriteAt(raw[:], int64(slot)*sectorSize)
	if err == nil {
		err = h.state.DataSync()
	}
	return h.settled(op, err)
}

// replace is the commit into a new file: at Start, when the old one is full,
// and when it is damaged.
func (h *hold) replace(ctx context.Context, op string, raw sector) error {
	content := make([]byte, stateSize)
	copy(content, raw[:])
	f, err := h.a.stage(content)
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	publish := f.Replace
	if h.fresh {
		publish = f.Publish
	}
	if h.state != nil {
		err = h.confirm(op)
	}
	if err == nil {
		err = live(ctx, op)
	}
	if err != nil {
		_ = f.Discard() // never had a name
		return err
	}
	if err = publish(h.name.state()); errors.Is(err, fs.ErrExist) {
		_ = f.Discard() // refused by the rename itself: nothing changed
		return fail(op, ErrState)
	}
	if errors.Is(err, fs.ErrNotExist) {
		_ = f.Discard() // swept: the rename found nothing to rename
		return failed(op, ErrUnavailable, err)
	}
	if err == nil {
		err = h.a.dir.Sync()
	}
	if err != nil {
		_ = f.Discard() // its old name, if it still has it
		return h.settled(op, err)
	}
	if h.state != nil {
		_ = h.state.Close() // replaced: nothing more will be written to it
	}
	h.state, h.fresh = f, false
	return nil
}

// settled ends a commit step: with an error the run is fenced in this process.
func (h *hold) settled(op string, err error) error {
	if err == nil {
		return nil
	}
	h.fate = ErrUncertain
	h.a.fences.add(h.a.fenceOf(h.name))
	return failed(op, ErrUncertain, err)
}

// confirm proves before a write that the held files are the named ones, with
// one name each, and that the newest record is the one this hold knows.
func (h *hold) confirm(op string) error {
	for _, f := range []*securedir.File{h.lock, h.guard, h.state} {
		if err := f.Check(); err != nil {
			return h.lost(op, err)
		}
	}
	var two [2 * sectorSize]byte
	have := two[:]
	if h.record.slot == sectors-1 {
		have = two[:sectorSize]
	}
	if err := h.state.ReadAt(have, int64(h.record.slot)*sectorSize); err != nil {
		return failed(op, ErrUnavailable, err)
	}
	var zero sector
	if !bytes.Equal(have[:sectorSize], h.raw[:]) || (len(have) > sectorSize && !bytes.Equal(have[sectorSize:], zero[:])) {
		return h.lost(op, securedir.ErrChanged)
	}
	return nil
}

// lost tells files that have changed from a system that could not say.
func (h *hold) lost(op string, cause error) error {
	if errors.Is(cause, securedir.ErrChanged) || errors.Is(cause, securedir.ErrUnsafe) {
		h.fate = ErrLost
		return failed(op, ErrLost, cause)
	}
	return failed(op, ErrUnavailable, cause)
}

// testify moves the witness. It has no barrier and may fail: it only lags then.
func (h *hold) testify() {
	_ = h.a.knownKeys(func(r *ring) error {
		st := h.lock.Stat()
		w := witness{sequence: h.record.sequence, nonce: h.record.nonce, inode: st.Inode, birth: st.Birth}
		s := w.encode(r.witnessKey())
		return h.lock.WriteAt(s[:], 0)
	})
}
