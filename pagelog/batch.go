package pagelog

import (
	"fmt"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// Codec says how a record is stored; frame.Plain by default.
type Codec = frame.Codec

// Batch is a set of records that will take effect together. The zero value is
// empty and ready. Building one sums and, where asked, compresses the records,
// so it is best done by many goroutines before they commit; a Batch itself
// belongs to one at a time.
//
// A batch that is being committed cannot be committed again until its outcome
// is known. Reset makes it empty and keeps its memory, or leaves that to the log
// if the outcome is still open: what becomes of a batch never changes a commit.
type Batch struct {
	// CompleteOnly acknowledges the commit when it is complete and visible,
	// before it is durable. Log.Sync makes it durable later; a crash may lose
	// a suffix of such commits, never one in the middle.
	CompleteOnly bool

	body    []byte
	count   int
	largest int // stored or raw bytes of the largest record
	keys    []batchKey
	entries []checkpoint.Entry // of the keys, for the commit
	err     error
	ticket  *Ticket // of the last commit
	own     *Ticket // that Log.Commit uses again; nil: none yet
}

// Append adds a record of kind 0. The bytes are copied.
func (b *Batch) Append(data []byte) { b.Add(Record{Data: data}) }

// Add adds a record. Kinds from frame.FirstReservedKind on are the engine's.
// The bytes are copied. What is over a limit is found when the batch is
// committed.
func (b *Batch) Add(r Record) {
	switch {
	case b.err != nil:
		return
	case len(r.Data) > frame.MaxRecordBytes:
		b.err = fmt.Errorf("%w: record %d has %d bytes, none may have over %d", ErrTooLarge, b.count, len(r.Data), frame.MaxRecordBytes)
		return
	case r.Kind >= frame.FirstReservedKind:
		b.err = fmt.Errorf("record %d: kind %#x is reserved for the engine; use one below %#x", b.count, r.Kind, uint32(frame.FirstReservedKind))
		return
	case r.Codec > frame.Zstd:
		b.err = fmt.Errorf("record %d: codec %d does not exist", b.count, r.Codec)
		return
	}
	var flags uint32
	if r.Required {
		flags = frame.FlagRequired
	}
	b.add(r.Kind, flags, r.Codec, r.Data)
}

func (b *Batch) add(kind, flags uint32, codec Codec, data []byte) {
	b.detach()
	b.body = frame.AppendRecord(b.body, kind, flags, codec, data)
	b.largest = max(b.largest, len(data))
	b.count++
}

// Len returns the number of records.
func (b *Batch) Len() int { return b.count }

// Size returns the bytes the batch takes in the file, without page headers.
func (b *Batch) Size() int64 { return frame.GroupHeaderSize + int64(len(b.body)) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.detach()
	b.body, b.count, b.largest, b.err, b.keys = b.body[:0], 0, 0, nil, b.keys[:0]
}

// detach leaves the memory of a commit whose outcome nobody waited for to the
// log.
func (b *Batch) detach() {
	if b.ticket == nil || !b.ticket.inFlight() {
		return
	}
	b.ticket, b.own = nil, nil
	b.body = append([]byte(nil), b.body...)
	b.entries = nil
}

// check holds the batch against the limits recorded in the log. Everything it
// finds is a rejection.
func (b *Batch) check(id *frame.Identity) error {
	switch {
	case b.err != nil:
		return b.err
	case b.count == 0:
		return ErrEmpty
	case uint64(b.count) > uint64(id.MaxRecords):
		return fmt.Errorf("%w: %d records in one commit, this log allows %d", ErrTooLarge, b.count, id.MaxRecords)
	case uint64(b.largest) > id.MaxRecord:
		return fmt.Errorf("%w: a record of %d bytes, this log allows %d", ErrTooLarge, b.largest, id.MaxRecord)
	case uint64(len(b.body)) > id.MaxGroup:
		return fmt.Errorf("%w: a commit of %d bytes, this log allows %d", ErrTooLarge, len(b.body), id.MaxGroup)
	}
	return nil
}

// Record is one payload of a commit.
type Record struct {
	Kind     uint32 // what it is, in the host's terms; 0 for plain
	Required bool   // readers that do not know the kind must refuse projection
	Codec    Codec  // how it is stored, if that saves a tenth
	Data     []byte // the payload
}
