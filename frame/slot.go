package frame

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"
)

// Slot is the writer's durable state. It names durable bytes only, and what it
// says of positions is confirmed by the bytes it names.
type Slot struct {
	Number     uint64   // +1 at each slot write
	Epoch      uint64   // of the writer
	Writer     [16]byte // random incarnation of the writer
	Durable    Place    // end of the last group acknowledged
	Floor      Place    // retention floor: raw end of the last dropped commit, its revision and digest
	Check      Place    // start of the newest checkpoint group, its revision and digest; zero for none
	Before     Place    // the checkpoint before it
	Fence      uint64   // fencing token
	Run        [32]byte // hash of the run the log belongs to
	Generation uint64   // file generation
	Superseded uint64   // the generation that supersedes this file; 0: none
	Features   Features // turned on after creation
	Time       int64    // nanoseconds since 1970, advisory
}

// Place is a position in the file and the history that ends there.
type Place struct {
	Offset   int64
	Revision uint64
	Digest   uint64
}

// SlotOffsets are the places of the two slots, in bytes from the file's start.
var SlotOffsets = [2]int64{SlotOffsetA, SlotOffsetB}

// PutSlot writes a slot that will lie at off into b.
func (g *Geometry) PutSlot(b []byte, off int64, s *Slot) {
	clear(b[:SlotSize])
	le := binary.LittleEndian
	copy(b[slotMagic:], slotMagicText)
	le.PutUint64(b[slotNumber:], s.Number)
	le.PutUint64(b[slotEpoch:], s.Epoch)
	copy(b[slotWriter:], s.Writer[:])
	s.Durable.put(b[slotEnd:])
	s.Floor.put(b[slotFloor:])
	s.Check.put(b[slotCheck:])
	s.Before.put(b[slotBefore:])
	le.PutUint64(b[slotFence:], s.Fence)
	copy(b[slotRun:], s.Run[:])
	le.PutUint64(b[slotGeneration:], s.Generation)
	le.PutUint64(b[slotSuperseded:], s.Superseded)
	s.Features.put(b[slotCompat:])
	le.PutUint64(b[slotTime:], uint64(s.Time))
	le.PutUint64(b[slotSum:], xxh3.HashSeed(b[:slotSum], g.spanAt(math.MaxInt64).salt+uint64(off)))
}

// DecodeSlot reads the slot at off. Errors: ErrMark, ErrSum; under a good sum
// ErrField or ErrPadding for what cannot be. A slot with an unknown
// incompatible feature is returned for its Features: its reserved bytes may be
// in use, and a field that cannot be is ErrUnsupported.
func (g *Geometry) DecodeSlot(b []byte, off int64) (Slot, error) {
	if len(b) < SlotSize || string(b[slotMagic:slotNumber]) != slotMagicText {
		return Slot{}, ErrMark
	}
	le := binary.LittleEndian
	if le.Uint64(b[slotSum:]) != xxh3.HashSeed(b[:slotSum], g.spanAt(math.MaxInt64).salt+uint64(off)) {
		return Slot{}, ErrSum
	}
	s := Slot{
		Number: le.Uint64(b[slotNumber:]), Epoch: le.Uint64(b[slotEpoch:]), Writer: [16]byte(b[slotWriter:slotEnd]),
		Durable: place(b[slotEnd:]), Floor: place(b[slotFloor:]), Check: place(b[slotCheck:]), Before: place(b[slotBefore:]),
		Fence: le.Uint64(b[slotFence:]), Run: [32]byte(b[slotRun:slotGeneration]),
		Generation: le.Uint64(b[slotGeneration:]), Superseded: le.Uint64(b[slotSuperseded:]),
		Features: features(b[slotCompat:]), Time: int64(le.Uint64(b[slotTime:])),
	}
	later := s.Features.UnknownIncompat() != 0
	if s.Number > math.MaxInt64 || s.Epoch > math.MaxInt64 || !g.validPlaces(&s) {
		return Slot{Features: s.Features}, unknownOr(later, ErrField)
	}
	if !later && !IsZero(b[slotReserved:slotSum]) {
		return Slot{}, ErrPadding
	}
	return s, nil
}

// validPlaces checks that a slot names places where such things can lie, none
// of them beyond the durable end.
func (g *Geometry) validPlaces(s *Slot) bool {
	for _, p := range []Place{s.Durable, s.Floor, s.Check, s.Before} {
		if p.Offset > s.Durable.Offset || p.Revision > math.MaxInt64 {
			return false
		}
	}
	for _, p := range []Place{s.Check, s.Before} {
		if p.Offset != 0 && !g.MayStart(p.Offset) {
			return false
		}
	}
	return g.MayEnd(s.Durable.Offset) && g.MayEnd(s.Floor.Offset)
}

func (p Place) put(b []byte) {
	binary.LittleEndian.PutUint64(b, uint64(p.Offset))
	binary.LittleEndian.PutUint64(b[8:], p.Revision)
	binary.LittleEndian.PutUint64(b[16:], p.Digest)
}

func place(b []byte) Place {
	le := binary.LittleEndian
	return Place{Offset: int64(le.Uint64(b)), Revision: le.Uint64(b[8:]), Digest: le.Uint64(b[16:])}
}
