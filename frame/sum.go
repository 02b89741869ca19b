package frame

import "github.com/zeebo/xxh3"

// Holds reports whether the record's stored bytes agree with its sum.
func (r *Record) Holds() bool { return xxh3.Hash(r.Data) == r.Sum }

// NextRecord splits the first record off a checked body; ok is false at its
// end. The slices are parts of body.
func NextRecord(body []byte) (r Record, rest []byte, ok bool) { return nextRecord(body) }
