package authority

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/snapshot"
)

// Verify believes an envelope, suspended or terminal, and gives its content. It
// takes no lock, writes nothing, and says ErrVerification for every reason not
// to believe it.
func (a *Authority) Verify(ctx context.Context, e Envelope) (snapshot.Snapshot, error) {
	const op = "verify"
	if e.check() != nil {
		return snapshot.Snapshot{}, fail(op, ErrInvalid)
	}
	if err := a.begin(ctx, op); err != nil {
		return snapshot.Snapshot{}, err
	}
	defer a.finish()
	s, raw, err := a.believe(op, &e)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	name := nameOf(e.head.runID)
	if a.fenced(name) {
		return snapshot.Snapshot{}, fail(op, ErrUncertain)
	}
	if err := a.notRolledBack(op, name, raw); err != nil {
		return snapshot.Snapshot{}, err
	}
	return s, nil
}

// notRolledBack asks the run's witness about a record read before. A witness
// that is ahead means a record put back, or one that has been followed by
// another since: the claim is not the run's either way.
func (a *Authority) notRolledBack(op string, name runName, raw sector) error {
	var room sector
	mark, lock, err := a.dir.Read(name.lock(), room[:0], sectorSize)
	if err != nil && !refused(err) {
		return failed(op, ErrUnavailable, err)
	}
	believed := false
	if err == nil {
		err = a.withKeys(func(r *ring) error {
			rec, _ := parseRecord(raw[:])
			w, present := parseWitness(mark, r.witnessKey())
			believed = judgeWitness(w, present, lock, &rec)
			return nil
		})
		if err != nil {
			return failed(op, ErrUnavailable, err)
		}
	}
	if !believed {
		return ErrVerification
	}
	return nil
}

// believe checks a claim against the run's newest record and opens the payload.
// It returns the record's bytes, so that a caller who locks later can tell
// whether anything happened in between.
//
// The order is what keeps a forger blind: every reason to refuse before the
// payload costs the same steps, whether scope, generation and run exist or not;
// the payload is hashed only for a genuine claim.
func (a *Authority) believe(op string, e *Envelope) (snapshot.Snapshot, sector, error) {
	file := stateBuffers.Get().(*[stateSize]byte)
	defer stateBuffers.Put(file)
	name := nameOf(e.head.runID)
	found, err := a.readState(name, file)
	if err != nil {
		return snapshot.Snapshot{}, sector{}, failed(op, ErrUnavailable, err)
	}
	var raw sector
	genuine := false
	err = a.withKeys(func(r *ring) error {
		genuine = r.genuine(e, name, file[:], &raw) && found
		return nil
	})
	if err != nil {
		return snapshot.Snapshot{}, sector{}, failed(op, ErrUnavailable, err)
	}
	if !genuine {
		return snapshot.Snapshot{}, sector{}, ErrVerification
	}
	s, err := e.open()
	return s, raw, err
}

var stateBuffers = sync.Pool{New: func() any { return new([stateSize]byte) }}

// readState reads a run's state file as it is now. A run that has none, or one
// that cannot be a state file, is read from authority.lock instead, which has
// the same size and says nothing, so that it costs the same. Only a system that
// cannot read is an error.
func (a *Authority) readState(name runName, file *[stateSize]byte) (found bool, err error) {
	for _, at := range []string{name.state(), lockName} {
		_, st, err := a.dir.Read(at, file[:0], stateSize)
		switch {
		case err == nil && st.Size == stateSize:
			return at != lockName, nil
		case err == nil, refused(err):
		default:
			return false, err
		}
	}
	return false, nil
}

// refused tells a name that leads to nothing fit from a system that cannot say.
func refused(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, securedir.ErrUnsafe) ||
		errors.Is(err, securedir.ErrChanged) || securedir.Class(err) == "unsafe" || securedir.Class(err) == "short"
}

// genuine reports whether an envelope carries the claim of the newest record.
// All of it is computed always.
func (r *ring) genuine(e *Envelope, name runName, file []byte, raw *sector) bool {
	rec, s, ok := r.judgeState(file, name)
	if ok {
		*raw = sector(s)
	} else {
		// A stand-in costs what the record's own MAC would have cost.
		rec = record{generation: r.primary(), transition: 1, runID: e.head.runID}
		if _, s := newest(file); s == nil || !decodes(s) {
			r.sealRecord(&rec)
		}
	}
	mac, known := r.claimMAC(e.claim.Generation, rec.transition, e.head)
	match := equal(mac, e.claim.MAC)
	stored := equal(rec.claim.mac, e.claim.MAC)
	scope := equal(r.scope, e.claim.Scope)
	return ok && known && match && stored && scope && rec.head().same(e.head) && rec.claim.generation == e.claim.Generation
}

func decodes(s []byte) bool {
	_, ok := parseRecord(s)
	return ok
}
