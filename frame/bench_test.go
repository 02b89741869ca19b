package frame

import (
	"fmt"
	"testing"

	"github.com/zeebo/xxh3"
)

// BenchmarkCheck stands beside the bare hash over the same payloads: what is
// left is the price of the format.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{64, 256, 1024, 4096} {
		h, body := benchGroup(16, size)
		b.Run(fmt.Sprintf("check/%d", size), func(b *testing.B) {
			b.SetBytes(int64(16 * size))
			b.ReportAllocs()
			for b.Loop() {
				if err := h.Check(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("hash/%d", size), func(b *testing.B) {
			b.SetBytes(int64(16 * size))
			for b.Loop() {
				for off := 0; off < len(body); off += RecordHeaderSize + size {
					hashSink += xxh3.Hash(body[off+RecordHeaderSize : off+RecordHeaderSize+size])
				}
			}
		})
	}
}

var hashSink uint64

func benchGroup(records, size int) (*GroupHeader, []byte) {
	var body []byte
	payload := make([]byte, size)
	for i := range records {
		for j := range payload {
			payload[j] = byte(i*31 + j*7)
		}
		body = AppendRecord(body, 1, 0, Plain, payload)
	}
	h := &GroupHeader{Count: uint32(records), Revision: 1, Body: int64(len(body)), Epoch: 1}
	h.Digest = h.ChainDigest(body)
	return h, body
}
