package pagelog

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// Info is what a log says of itself, at one moment. The file's salt is a
// secret of the file and is not in it.
type Info struct {
	LogID         cursor.LogID
	FormatVersion int
	PageSize      int   // bytes
	Align         int   // bytes; writes begin at multiples of it
	MaxRecord     int64 // bytes of one record
	MaxGroup      int64 // bytes of one commit with its record headers
	MaxRecords    int   // records of one commit
	MaxSize       int64 // bytes of the file; 0: none
	Application   uint64
	Created       time.Time // by the creator's clock: advisory

	Head       Commit // last complete commit; with Damage, of the sound prefix
	Durable    Commit // last commit that is acknowledged and can be read
	HeadEnd    int64  // byte offset where the head ends
	DurableEnd int64  // byte offset up to which bytes were acknowledged; with Damage it lies beyond HeadEnd
	FileSize   int64  // bytes, space written ahead included
	Epoch      uint64 // of the last writer; 0 if both slots are damaged
	Oldest     uint64 // first revision the log still has, or will have

	Base        cursor.Cursor // what the log begins after; zero: nothing
	Ancestors   []cursor.Cursor
	Floor       Mark   // retention floor: end of the last dropped commit
	Checkpoints []Mark // named by the newest slot, newest first
	Owner       Fence  // whose log it is, and its newest holder; zero: no run's
	Generation  uint64 // of the file
	Superseded  uint64 // generation that supersedes this file; 0: none

	BadIdentities []string // what is wrong with copies of the identity; one may be
	BadSlots      []string // what is wrong with slots; one may be torn
	Damage        error    // ErrCorrupt behind the head; nil if reading met none
}

// Mark is a place in the file and the history there.
type Mark struct {
	Offset   int64 // bytes from the start of the file
	Revision uint64
	Digest   cursor.Digest
}

// Info looks at the file and says what it finds. It reads the header area and
// the bytes near the head, not the whole log: Verify does that. Damage it meets
// is in the Info and is no error. Errors: ErrReplaced, ErrDiverged,
// ErrUnsupported, ErrNotALog, ErrClosed, or what the file system said.
func (r *Reader) Info() (Info, error) { return ask(r, (*Reader).infoHere) }

// Generation returns the number of the file that is read. Compaction puts a
// file with a higher number into its place, and a reader goes over to it when
// it next looks: what was read before is then of another file. It does not look
// at the file; 0 means that its slots are damaged.
func (r *Reader) Generation() uint64 {
	r = r.now()
	if r.live != nil {
		return r.live.slots.cur.Generation // it never changes while the log is open
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.view.header.newest(); s != nil {
		return s.Generation
	}
	return 0
}

func (r *Reader) infoHere() (Info, error) {
	b, err := r.bounds()
	if err != nil {
		return Info{}, err
	}
	h, err := readHeader(r.file)
	if err != nil {
		return Info{}, err
	}
	durable, err := r.durablePoint(b)
	if err != nil {
		return Info{}, err
	}
	info := h.info()
	info.Head = Commit{Revision: b.stop.rev, Digest: cursor.Digest(b.stop.digest), Durable: b.stop.end <= b.proven}
	info.Durable = Commit{Revision: durable.rev, Digest: cursor.Digest(durable.digest), Durable: true}
	info.HeadEnd, info.DurableEnd = b.stop.end, b.proven
	info.Oldest = b.begin.rev + 1
	info.Damage = b.damage
	return info, nil
}

// durablePoint returns the last group of b that is acknowledged.
func (r *Reader) durablePoint(b bounds) (point, error) {
	if b.proven >= b.stop.end {
		return b.stop, nil
	}
	if r.live != nil {
		_, durable, err := r.live.points()
		return durable, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.stopAtProven(&b)
	var f *fault
	if errors.As(err, &f) {
		return point{}, f.located(r.geo, b.begin)
	}
	return b.stop, err
}

// info is what the header area alone says.
func (h *header) info() Info {
	id := &h.id
	info := Info{
		LogID: id.LogID, FormatVersion: frame.Version, PageSize: int(id.PageSize), Align: int(id.Align),
		MaxRecord: int64(id.MaxRecord), MaxGroup: int64(id.MaxGroup), MaxRecords: int(id.MaxRecords),
		MaxSize: int64(id.MaxSize), Application: id.App, Created: time.Unix(0, id.Created), FileSize: h.size,
		Floor: markAt(h.begin().place()),
	}
	if id.Base != (frame.Boundary{}) {
		info.Base = cursorAt(id.Base.LogID, id.Base.Revision, id.Base.Digest)
	}
	for _, a := range id.Lineage {
		info.Ancestors = append(info.Ancestors, cursorAt(a.LogID, a.Revision, a.Digest))
	}
	for i, err := range h.badIdentity {
		if err != nil {
			info.BadIdentities = append(info.BadIdentities, fmt.Sprintf("copy %d of the identity, at offset %d: %v",
				i, [2]int64{frame.IdentityOffset, frame.IdentityCopyOffset}[i], err))
		}
	}
	for i := range h.slots {
		if err := h.slots[i].err; err != nil && !h.neverWritten(i) {
			info.BadSlots = append(info.BadSlots, fmt.Sprintf("slot %d, at offset %d: %v", i, frame.SlotOffsets[i], err))
		}
	}
	if s := h.newest(); s != nil {
		info.Epoch, info.Generation, info.Superseded = s.Epoch, s.Generation, s.Superseded
		info.Owner = Fence{s.Run, s.Fence}
		for _, p := range []frame.Place{s.Check, s.Before} {
			if p.Offset != 0 {
				info.Checkpoints = append(info.Checkpoints, markAt(p))
			}
		}
	}
	return info
}

// neverWritten reports whether slot i is simply not used yet: creation writes
// slot number 1, and the first opening over the other one.
func (h *header) neverWritten(i int) bool {
	other := &h.slots[1-i]
	return other.err == nil && other.Number == 1 && errors.Is(h.slots[i].err, frame.ErrMark)
}

func markAt(p frame.Place) Mark {
	return Mark{Offset: p.Offset, Revision: p.Revision, Digest: cursor.Digest(p.Digest)}
}

func cursorAt(id [16]byte, revision, digest uint64) cursor.Cursor {
	return cursor.Cursor{Position: cursor.Position{Log: id, Revision: revision}, Digest: cursor.Digest(digest)}
}
