package fork

import (
	"encoding/binary"
	"errors"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// Record is the payload of the one record, of kind frame.KindFork, of a fork's
// first commit: where the fork begins. It is history like any other, so a fork
// of a fork holds the records of both.
type Record struct {
	Source   cursor.LogID  // the log that was forked, also where the lineage has no place for it
	Revision uint64        // of the boundary
	Digest   cursor.Digest // of that commit
	End      int64         // byte offset of the boundary
}

// RecordVersion is the version of the record this package writes.
const RecordVersion = 1

// RecordSize is the length of the record in bytes.
const RecordSize = 48

// Byte layout, little-endian. The comment begins with the field's size.
const (
	recVersion  = 0  // 4 version of the record
	recReserved = 4  // 4 zero
	recSource   = 8  // 16 log ID of the source
	recRevision = 24 // 8 revision of the boundary
	recDigest   = 32 // 8 digest of the boundary
	recEnd      = 40 // 8 end offset of the boundary
)

// ErrRecord means that the bytes are no fork record.
var ErrRecord = errors.New("not a fork record")

// Encode returns the record's bytes.
func (r *Record) Encode() []byte {
	b := make([]byte, RecordSize)
	le := binary.LittleEndian
	le.PutUint32(b[recVersion:], RecordVersion)
	copy(b[recSource:], r.Source[:])
	le.PutUint64(b[recRevision:], r.Revision)
	le.PutUint64(b[recDigest:], uint64(r.Digest))
	le.PutUint64(b[recEnd:], uint64(r.End))
	return b
}

// DecodeRecord reads a record. Errors: frame.ErrUnsupported for a later
// version, ErrRecord for what cannot be.
func DecodeRecord(b []byte) (Record, error) {
	le := binary.LittleEndian
	if len(b) < recReserved || le.Uint32(b) == 0 {
		return Record{}, ErrRecord
	}
	if le.Uint32(b) != RecordVersion {
		return Record{}, frame.ErrUnsupported
	}
	if len(b) != RecordSize || le.Uint32(b[recReserved:]) != 0 {
		return Record{}, ErrRecord
	}
	r := Record{
		Source: cursor.LogID(b[recSource:recRevision]), Revision: le.Uint64(b[recRevision:]),
		Digest: cursor.Digest(le.Uint64(b[recDigest:])), End: int64(le.Uint64(b[recEnd:])),
	}
	if r.Source == (cursor.LogID{}) || r.End <= 0 || r.End%8 != 0 || r.Revision > 1<<63-1 {
		return Record{}, ErrRecord
	}
	return r, nil
}
