package frame

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Holds reports whether the record's stored bytes agree with its sum.
func (r *Record) Holds() bool { return xxh3.Hash(r.Data) == r.Sum }

// NextRecord splits the first record off a checked body; ok is false at its
// end. The slices are parts of body.
func NextRecord(body []byte) (r Record, rest []byte, ok bool) { return nextRecord(body) }

// StoredLength returns the stored length that a record header says: not yet
// under a sum, so hold it against something.
func StoredLength(header []byte) int {
	return int(binary.LittleEndian.Uint32(header[recordLength:]))
}
