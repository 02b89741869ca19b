package frame

import (
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Both ways of zstd keep their tables in pools: making them costs a hundred
// times what a small record does, and the collector takes back what a burst
// left behind. Neither holds a goroutine. A single segment always states its
// decoded length, a short one included.
var (
	encoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true))
		if err != nil {
			panic("internal error: zstd options: " + err.Error())
		}
		return e
	}}
	decoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(MaxRecordBytes), zstd.WithDecoderMaxWindow(MaxRecordBytes), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			panic("internal error: zstd options: " + err.Error())
		}
		return d
	}}
)

// pack appends data, compressed, to body.
func pack(codec Codec, body, data []byte) []byte {
	switch codec {
	case S2:
		at := len(body)
		body = slices.Grow(body, s2.MaxEncodedLen(len(data)))
		return body[:at+len(s2.Encode(body[at:cap(body)], data))]
	case Zstd:
		e := encoders.Get().(*zstd.Encoder)
		defer encoders.Put(e)
		return e.EncodeAll(data, body)
	}
	panic("internal error: unknown codec")
}

// declaredLength returns what stored bytes say of their length once decoded.
func declaredLength(codec Codec, stored []byte) (n uint64, ok bool) {
	if codec == S2 {
		n, err := s2.DecodedLen(stored)
		return uint64(n), err == nil
	}
	var h zstd.Header
	err := h.Decode(stored)
	return h.FrameContentSize, err == nil // 0 if it does not say, which no raw length is
}

// unpack decodes stored bytes into room, up to its capacity.
func unpack(codec Codec, room, stored []byte) ([]byte, error) {
	if codec == S2 {
		return s2.Decode(room, stored)
	}
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	return d.DecodeAll(stored, room)
}
