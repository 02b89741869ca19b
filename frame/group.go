package frame

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/zeebo/xxh3"
)

// GroupHeader is the head of a group. It says everything about the group, so
// that one write can put the group into the file.
type GroupHeader struct {
	Flags      uint16 // FlagDerived or 0
	Count      uint32 // records, at least 1
	Revision   uint64 // own revision; of a derived group, the last data group's
	Body       int64  // bytes of all records, without page headers
	DurableEnd int64  // raw end of the last group known durable when it was written
	Prev       uint64 // digest of the data group before it
	Digest     uint64 // chain value of this group
	Epoch      uint64 // of the writer
	Time       int64  // nanoseconds since 1970, advisory: decides nothing
}

// Derived reports whether the group adds no history.
func (h *GroupHeader) Derived() bool { return h.Flags&FlagDerived != 0 }

// PutGroup writes the header of the group that starts at off into b.
func (g *Geometry) PutGroup(b []byte, off int64, h *GroupHeader) {
	binary.LittleEndian.PutUint64(b[groupMark:], g.spanAt(off).mark)
	binary.LittleEndian.PutUint16(b[groupVersion:], Version)
	binary.LittleEndian.PutUint16(b[groupFlags:], h.Flags)
	binary.LittleEndian.PutUint32(b[groupCount:], h.Count)
	binary.LittleEndian.PutUint64(b[groupRev:], h.Revision)
	binary.LittleEndian.PutUint64(b[groupBody:], uint64(h.Body))
	binary.LittleEndian.PutUint64(b[groupPrev:], h.Prev)
	binary.LittleEndian.PutUint64(b[groupDigest:], h.Digest)
	binary.LittleEndian.PutUint64(b[groupEpoch:], h.Epoch)
	binary.LittleEndian.PutUint64(b[groupTime:], uint64(h.Time))
	g.sealGroup(b, off, h.DurableEnd)
}

// sealGroup fills in the durable end and the sum: the last thing before the
// write.
func (g *Geometry) sealGroup(b []byte, off, durableEnd int64) {
	binary.LittleEndian.PutUint64(b[groupDurable:], uint64(durableEnd))
	binary.LittleEndian.PutUint64(b[groupSum:], xxh3.HashSeed(b[:groupSum], g.spanAt(off).salt+uint64(off)))
}

// DecodeGroup reads the header of the group that starts at off. Errors:
// ErrMark, ErrSum; under a good sum ErrUnsupported for a version or flag this
// package does not know or a body this machine cannot address, ErrField for a
// value that cannot be. With ErrUnsupported the durable end and the epoch still
// hold: they stay where they are in every version.
func (g *Geometry) DecodeGroup(b []byte, off int64) (GroupHeader, error) {
	if len(b) < GroupHeaderSize || !g.IsMark(b, off) {
		return GroupHeader{}, ErrMark
	}
	if binary.LittleEndian.Uint64(b[groupSum:]) != xxh3.HashSeed(b[:groupSum], g.spanAt(off).salt+uint64(off)) {
		return GroupHeader{}, ErrSum
	}
	h := GroupHeader{
		Flags:      binary.LittleEndian.Uint16(b[groupFlags:]),
		Count:      binary.LittleEndian.Uint32(b[groupCount:]),
		Revision:   binary.LittleEndian.Uint64(b[groupRev:]),
		Body:       int64(binary.LittleEndian.Uint64(b[groupBody:])),
		DurableEnd: int64(binary.LittleEndian.Uint64(b[groupDurable:])),
		Prev:       binary.LittleEndian.Uint64(b[groupPrev:]),
		Digest:     binary.LittleEndian.Uint64(b[groupDigest:]),
		Epoch:      binary.LittleEndian.Uint64(b[groupEpoch:]),
		Time:       int64(binary.LittleEndian.Uint64(b[groupTime:])),
	}
	if binary.LittleEndian.Uint16(b[groupVersion:]) != Version || h.Flags&^FlagDerived != 0 {
		return h, ErrUnsupported
	}
	if h.DurableEnd < 0 || h.DurableEnd > off || h.Epoch > math.MaxInt64 || h.Revision > math.MaxInt64 || h.Revision == 0 && !h.Derived() {
		return h, ErrField
	}
	if h.Count == 0 || h.Count > MaxGroupRecords || h.Body > g.maxBody ||
		h.Body < int64(h.Count)*RecordHeaderSize || h.Body%8 != 0 {
		return h, ErrField
	}
	if h.Body > math.MaxInt/2 {
		return h, ErrUnsupported
	}
	return h, nil
}

// ChainDigest returns the chain value of a group: over the previous digest,
// the flags, the revision, the record count and every record header, which
// holds the sum of the record's bytes. body must be well-formed.
func (h *GroupHeader) ChainDigest(body []byte) uint64 {
	var c chain
	c.start(h)
	for len(body) >= RecordHeaderSize {
		c.add(body)
		_, size, ok := recordExtent(body)
		if !ok {
			break
		}
		body = body[size:]
	}
	return c.sum()
}

// Check validates a group's body against its header: every record well-formed
// and under its sum, nothing left over, and the digest recomputed. It holds no
// reference to body. Errors: ErrField, ErrPadding, ErrSum, ErrDigest.
func (h *GroupHeader) Check(body []byte) error {
	var c chain
	c.start(h)
	for range h.Count {
		end, size, ok := recordExtent(body)
		if !ok {
			return ErrField
		}
		if !padded(body, end, size) {
			return ErrPadding
		}
		if xxh3.Hash(body[RecordHeaderSize:end]) != binary.LittleEndian.Uint64(body[recordSum:]) {
			return ErrSum
		}
		c.add(body)
		body = body[size:]
	}
	if len(body) != 0 {
		return ErrField
	}
	if c.sum() != h.Digest {
		return ErrDigest
	}
	return nil
}

// chain hashes a stream of record headers without allocating: a short stream
// in one piece, a long one through a hasher that is used again. Both ways are
// the same function of the same bytes.
type chain struct {
	n    int
	long *xxh3.Hasher
	buf  [chainPrefix + chainInline*RecordHeaderSize]byte
}

const (
	chainPrefix = 32
	chainInline = 20 // headers held before the hasher is needed; larger costs every group its zeroing
)

var hashers = sync.Pool{New: func() any { return xxh3.New() }}

func (c *chain) start(h *GroupHeader) {
	binary.LittleEndian.PutUint64(c.buf[0:], h.Prev)
	binary.LittleEndian.PutUint64(c.buf[8:], uint64(h.Flags))
	binary.LittleEndian.PutUint64(c.buf[16:], h.Revision)
	binary.LittleEndian.PutUint64(c.buf[24:], uint64(h.Count))
	c.n = chainPrefix
}

// add takes the record header that b begins with, as three words: a copy of
// 24 bytes would be a call.
func (c *chain) add(b []byte) {
	if c.n+RecordHeaderSize > len(c.buf) {
		c.flush()
	}
	from, to := b[:RecordHeaderSize], c.buf[c.n:c.n+RecordHeaderSize]
	binary.LittleEndian.PutUint64(to[0:], binary.LittleEndian.Uint64(from[0:]))
	binary.LittleEndian.PutUint64(to[8:], binary.LittleEndian.Uint64(from[8:]))
	binary.LittleEndian.PutUint64(to[16:], binary.LittleEndian.Uint64(from[16:]))
	c.n += RecordHeaderSize
}

func (c *chain) flush() {
	if c.long == nil {
		c.long = hashers.Get().(*xxh3.Hasher)
		c.long.Reset()
	}
	_, _ = c.long.Write(c.buf[:c.n]) // a hasher never fails
	c.n = 0
}

func (c *chain) sum() uint64 {
	if c.long == nil {
		return xxh3.Hash(c.buf[:c.n])
	}
	c.flush()
	sum := c.long.Sum64()
	hashers.Put(c.long)
	c.long = nil
	return sum
}
