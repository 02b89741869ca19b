package frame

import "github.com/zeebo/xxh3"

// Holds reports whether the record's stored bytes agree with its sum.
func (r *Record) Holds() bool { return xxh3.Hash(r.Data) == r.Sum }
