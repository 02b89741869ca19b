package frame

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/zeebo/xxh3"
)

// Codec says how a record's bytes are stored.
type Codec uint8

// The codecs of format version 1.
const (
	Plain Codec = iota
	S2
	Zstd
)

// Record is one payload of a group as it is stored.
type Record struct {
	Kind  uint32
	Flags uint32 // FlagRequired, and the codec
	Raw   uint32 // length once decoded, if compressed; else 0
	Sum   uint64 // of Data
	Data  []byte // stored bytes; a part of the group's buffer
}

// Codec returns how Data is stored.
func (r *Record) Codec() Codec { return Codec(r.Flags >> codecShift) }

// Payload returns the record's decoded bytes: Data itself where nothing is
// compressed, else appended to dst. limit bounds the decoded length in bytes;
// nothing larger is ever allocated. Errors: ErrUnsupported for a codec or flag
// of a later version, ErrField for a raw length that is over the limit or a
// lie.
func (r *Record) Payload(dst []byte, limit int64) ([]byte, error) {
	if r.Flags&^knownFlags != 0 || r.Codec() > Zstd {
		return nil, ErrUnsupported
	}
	if r.Codec() == Plain {
		if r.Raw != 0 {
			return nil, ErrField
		}
		return r.Data, nil
	}
	if limit = min(limit, MaxRecordBytes); r.Raw == 0 || int64(r.Raw) > limit {
		return nil, fmt.Errorf("%w: raw length %d, limit %d", ErrField, r.Raw, limit)
	}
	return r.decode(dst)
}

// decode appends the payload of a compressed record. Both codecs declare the
// length once more in the stored bytes; memory is taken only if they agree.
func (r *Record) decode(dst []byte) ([]byte, error) {
	at, want := len(dst), int(r.Raw)
	if n, ok := declaredLength(r.Codec(), r.Data); !ok || n != uint64(want) {
		return nil, ErrField
	}
	dst = slices.Grow(dst, want)[:at+want]
	room := dst[at : at : at+want] // neither codec writes beyond a capacity
	out, err := unpack(r.Codec(), room, r.Data)
	if err != nil || len(out) != want {
		return nil, ErrField
	}
	if &out[0] != &dst[at] {
		copy(dst[at:], out)
	}
	return dst, nil
}

// AppendRecord appends a record to the body of a group: header, payload,
// zeros. flags holds FlagRequired or nothing. The payload is compressed if
// codec says so and it saves at least a tenth. The caller keeps data and has
// checked its length against the log's limits and MaxRecordBytes.
func AppendRecord(body []byte, kind, flags uint32, codec Codec, data []byte) []byte {
	if codec != Plain && len(data) > 0 {
		at := len(body)
		body = pack(codec, append(body, make([]byte, RecordHeaderSize)...), data)
		if packed := body[at+RecordHeaderSize:]; pays(len(packed), len(data)) {
			flags |= uint32(codec) << codecShift
			r := Record{Kind: kind, Flags: flags, Raw: uint32(len(data)), Sum: xxh3.Hash(packed), Data: packed}
			r.put(body[at:])
			return append(body, make([]byte, -len(packed)&7)...)
		}
		body = body[:at]
	}
	return AppendStored(body, Record{Kind: kind, Flags: flags, Sum: xxh3.Hash(data), Data: data})
}

// pays reports whether compression saved at least a tenth.
func pays(packed, raw int) bool { return raw-packed >= (raw+9)/10 }

// AppendStored appends a record exactly as another log stores it.
func AppendStored(body []byte, r Record) []byte {
	at := len(body)
	body = append(slices.Grow(body, int(RecordSize(len(r.Data)))), make([]byte, RecordHeaderSize)...)
	r.put(body[at:])
	return append(append(body, r.Data...), make([]byte, -len(r.Data)&7)...)
}

// put writes the record's header into b.
func (r *Record) put(b []byte) {
	binary.LittleEndian.PutUint32(b[recordLength:], uint32(len(r.Data)))
	binary.LittleEndian.PutUint32(b[recordRaw:], r.Raw)
	binary.LittleEndian.PutUint32(b[recordKind:], r.Kind)
	binary.LittleEndian.PutUint32(b[recordFlags:], r.Flags)
	binary.LittleEndian.PutUint64(b[recordSum:], r.Sum)
}

// RecordSize returns the bytes a record of length stored bytes takes in a
// group's body.
func RecordSize(length int) int64 { return recordSize(int64(length)) }

func recordSize(length int64) int64 { return RecordHeaderSize + (length+7)&^7 }

// Records iterates the records of a checked body in order. The slices are
// parts of body.
func Records(body []byte) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for len(body) > 0 {
			r, rest, ok := nextRecord(body)
			if !ok || !yield(r) {
				return
			}
			body = rest
		}
	}
}

// nextRecord splits the first record off a body.
func nextRecord(body []byte) (r Record, rest []byte, ok bool) {
	end, size, ok := recordExtent(body)
	if !ok {
		return r, nil, false
	}
	r = Record{
		Kind:  binary.LittleEndian.Uint32(body[recordKind:]),
		Flags: binary.LittleEndian.Uint32(body[recordFlags:]),
		Raw:   binary.LittleEndian.Uint32(body[recordRaw:]),
		Sum:   binary.LittleEndian.Uint64(body[recordSum:]),
		Data:  body[RecordHeaderSize:end:end],
	}
	return r, body[size:], true
}

// recordExtent returns where in body the first record's payload ends and where
// the record itself does. The length in it is not under a sum yet, so it is
// held against the bytes that are there; ok means both lie in body.
func recordExtent(body []byte) (end, size int, ok bool) {
	if len(body) < RecordHeaderSize {
		return 0, 0, false
	}
	length := int64(binary.LittleEndian.Uint32(body[recordLength:]))
	total := recordSize(length)
	if length > MaxRecordBytes || total > int64(len(body)) {
		return 0, 0, false
	}
	return RecordHeaderSize + int(length), int(total), true
}

// padded reports whether the bytes of body from end to size, fewer than eight,
// are zero. Sizes are multiples of eight, so one word holds them all.
func padded(body []byte, end, size int) bool {
	used := uint(end) % 8
	return used == 0 || binary.LittleEndian.Uint64(body[size-8:size])>>(8*used) == 0
}
