package checkpoint

import (
	"bytes"
	"math"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
)

// FuzzDecode covers L4: what decodes encodes to the same bytes, and nothing
// panics.
func FuzzDecode(f *testing.F) {
	f.Add(sample().Encode())
	f.Add(make([]byte, Size))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(b)
		if err == nil && !bytes.Equal(c.Encode(), b) {
			t.Fatalf("%x decodes to what encodes as %x", b, c.Encode())
		}
	})
}

// FuzzBlock covers L4 for blocks of index runs. The sum is made good, or
// nothing would be reached.
func FuzzBlock(f *testing.F) {
	r := Run{Number: 7}
	b, _ := r.Piece(nil, nil, sorted(BlockEntries+20), true)
	f.Add(b[PieceHeader:PieceHeader+BlockSize], uint64(7), uint32(0))
	f.Add(b[PieceHeader+BlockSize:], uint64(7), uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, run uint64, number uint32) {
		if len(b) == BlockSize {
			b = bytes.Clone(b)
			sealBlock(b, run, number)
		}
		k, err := DecodeBlock(b, run, number)
		if err != nil {
			return
		}
		entries := make([]Entry, k.Len)
		for i := range entries {
			entries[i] = k.At(i)
			if at := k.Search(entries[i].Hash); at > i || k.At(at).Hash != entries[i].Hash {
				t.Fatalf("entry %d is found at %d", i, at)
			}
		}
		if !frame.IsZero(b[blockEntries+k.Len*entrySize : blockSum]) {
			t.Fatal("unused bytes are not zero")
		}
	})
}

// FuzzKey covers L4 for key records.
func FuzzKey(f *testing.F) {
	f.Add(AppendKey(nil, Key{3, []byte("ns"), []byte("key")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := DecodeKey(b)
		if err == nil && !bytes.Equal(AppendKey(nil, k), b) {
			t.Fatalf("%x", b)
		}
	})
}

// TestDecode_ZeroIsNothing_L3 covers L3.
func TestDecode_ZeroIsNothing_L3(t *testing.T) {
	if _, err := Decode(make([]byte, Size)); err == nil {
		t.Error("a checkpoint")
	}
	if _, err := DecodeKey(make([]byte, keyHeader)); err == nil {
		t.Error("a key")
	}
	for _, seed := range []uint64{0, 1, math.MaxUint32} {
		if _, err := DecodeBlock(make([]byte, BlockSize), seed, 0); err == nil {
			t.Error("a block")
		}
	}
}
