package frame

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
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
// compressed, else appended to dst. limit bounds the result in bytes. Errors:
// ErrUnsupported for a codec or flag of a later version, ErrField for a raw
// length that is over the limit or a lie.
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
	if int64(r.Raw) > limit {
		return nil, fmt.Errorf("%w: raw length %d over the limit of %d", ErrField, r.Raw, limit)
	}
	return r.decode(dst)
}

func (r *Record) decode(dst []byte) ([]byte, error) {
	at, want := len(dst), int(r.Raw)
	var err error
	switch r.Codec() {
	case S2:
		if n, lenErr := s2.DecodedLen(r.Data); lenErr != nil || n != want {
			return nil, ErrField
		}
		var out []byte
		out, err = s2.Decode(nil, r.Data)
		dst = append(dst, out...)
	default:
		dst, err = decodeZstd(dst, r.Data, want)
	}
	if err != nil || len(dst)-at != want {
		return nil, ErrField
	}
	return dst, nil
}

func decodeZstd(dst, stored []byte, want int) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(want)+1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(stored, dst)
}

// AppendRecord appends a record to the body of a group: header, payload,
// zeros. The payload is compressed if codec says so and it saves at least a
// tenth. The caller keeps data and has checked its length against the log's
// limits and MaxRecordBytes.
func AppendRecord(body []byte, kind, flags uint32, codec Codec, data []byte) []byte {
	stored, raw := data, 0
	if codec != Plain {
		if packed := pack(codec, data); len(packed) <= len(data)-len(data)/10-1 {
			stored, raw = packed, len(data)
			flags |= uint32(codec) << codecShift
		}
	}
	return AppendStored(body, Record{Kind: kind, Flags: flags, Raw: uint32(raw), Sum: xxh3.Hash(stored), Data: stored})
}

// AppendStored appends a record exactly as another log stores it.
func AppendStored(body []byte, r Record) []byte {
	var h [RecordHeaderSize]byte
	binary.LittleEndian.PutUint32(h[recordLength:], uint32(len(r.Data)))
	binary.LittleEndian.PutUint32(h[recordRaw:], r.Raw)
	binary.LittleEndian.PutUint32(h[recordKind:], r.Kind)
	binary.LittleEndian.PutUint32(h[recordFlags:], r.Flags)
	binary.LittleEndian.PutUint64(h[recordSum:], r.Sum)
	body = append(append(body, h[:]...), r.Data...)
	var zeros [8]byte
	return append(body, zeros[:-len(r.Data)&7]...)
}

func pack(codec Codec, data []byte) []byte {
	if codec == S2 {
		return s2.Encode(nil, data)
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return data // only for options that do not exist
	}
	return e.EncodeAll(data, nil)
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
			r, rest, err := nextRecord(body)
			if err != nil || !yield(r) {
				return
			}
			body = rest
		}
	}
}

// nextRecord splits the first record off a body. The lengths in it are not
// under a sum yet, so they are held against the bytes that are there.
func nextRecord(body []byte) (r Record, rest []byte, err error) {
	if len(body) < RecordHeaderSize {
		return r, nil, ErrField
	}
	length := int64(binary.LittleEndian.Uint32(body[recordLength:]))
	size := recordSize(length)
	if length > MaxRecordBytes || size > int64(len(body)) {
		return r, nil, ErrField
	}
	end := RecordHeaderSize + length
	if !IsZero(body[end:size]) {
		return r, nil, ErrPadding
	}
	r = Record{
		Kind:  binary.LittleEndian.Uint32(body[recordKind:]),
		Flags: binary.LittleEndian.Uint32(body[recordFlags:]),
		Raw:   binary.LittleEndian.Uint32(body[recordRaw:]),
		Sum:   binary.LittleEndian.Uint64(body[recordSum:]),
		Data:  body[RecordHeaderSize:end:end],
	}
	return r, body[size:], nil
}
