package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/zeebo/xxh3"
)

// testIdentity is a small sound identity; nothing in it is random.
func testIdentity(page, align uint32) *Identity {
	return &Identity{
		PageSize: page, Align: align, Salt: 0x5A17_5A17_5A17_5A17,
		LogID: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		App:   0x6170_7021, MaxRecord: 16 << 20, MaxGroup: 64 << 20, MaxRecords: MaxGroupRecords,
		IndexKey: [16]byte{0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF},
		Created:  1_700_000_000_000_000_000,
	}
}

func testGeometry(page, align uint32) *Geometry { return testIdentity(page, align).Geometry() }

// pageSizes and aligns are all that version 1 allows.
var (
	pageSizes = []uint32{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20}
	aligns    = []uint32{8, 512, 4096}
)

// testGroup is a group before it is laid out.
type testGroup struct {
	GroupHeader
	body []byte
}

// history gives groups revisions and a chain, beginning after rev and prev.
func history(rev, prev uint64, groups ...testGroup) []testGroup {
	for i := range groups {
		g := &groups[i]
		if !g.Derived() {
			rev++
		}
		g.Revision, g.Prev, g.Body, g.Count = rev, prev, int64(len(g.body)), 0
		for range Records(g.body) {
			g.Count++
		}
		g.Digest = g.ChainDigest(g.body)
		if !g.Derived() {
			prev = g.Digest
		}
	}
	return groups
}

// commitOf returns a group of plain records.
func commitOf(payloads ...[]byte) testGroup {
	var g testGroup
	for i, p := range payloads {
		g.body = AppendRecord(g.body, uint32(i+1), 0, Plain, p)
	}
	return g
}

// pattern returns n bytes in which no stretch repeats soon.
func pattern(n int, seed uint64) []byte {
	b := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		seed = seed*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(b[i:], seed^seed>>29)
	}
	return b[:n]
}

// layOut builds one write of groups behind end.
func layOut(b *Builder, end int64, last uint64, groups []testGroup) []byte {
	b.Reset(end, last)
	for i := range groups {
		b.Add(&groups[i].GroupHeader, groups[i].body)
	}
	b.Seal(end)
	return b.Bytes()
}

var (
	errPage   = errors.New("bad page header")
	errExtent = errors.New("group runs past the bytes")
	errChain  = errors.New("chain is broken")
)

// walk is the decode path as a reader takes it: every byte from end to the raw
// end of the n-th group is examined. raw lies at off in the file.
func walk(g *Geometry, raw []byte, off, end int64, first testGroup, n int) (got []testGroup, err error) {
	rev, prev := first.Revision-1, first.Prev
	if first.Derived() {
		rev++
	}
	for range n {
		start := g.Start(end)
		if start-off+GroupHeaderSize > int64(len(raw)) {
			return got, errExtent
		}
		h, err := g.DecodeGroup(raw[start-off:], start)
		if err != nil {
			return got, err
		}
		bad, err := g.CheckGap(raw[max(end-off, 0):start-off], max(end, off), rev)
		if err != nil {
			return got, err
		}
		stop := g.End(start, h.Body)
		if stop < 0 || stop-off > int64(len(raw)) {
			return got, errExtent
		}
		body, badIn := g.Gather(append([]byte(nil), raw[start-off:stop-off]...), &h, start)
		if bad != 0 || badIn != 0 {
			return got, errPage
		}
		if err := h.Check(body); err != nil {
			return got, err
		}
		if !h.Derived() {
			rev++
		}
		if h.Revision != rev || h.Prev != prev {
			return got, errChain
		}
		if !h.Derived() {
			prev = h.Digest
		}
		got, end = append(got, testGroup{h, body}), stop
	}
	return got, nil
}

// reseal makes the sum of a structure whose sum is its last eight bytes hold.
func reseal(b []byte, seed uint64) []byte {
	n := len(b) - 8
	binary.LittleEndian.PutUint64(b[n:], xxh3.HashSeed(b[:n], seed))
	return b
}

// flips calls try with every single bit of b flipped, one at a time.
func flips(b []byte, try func(at string)) {
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			try(fmt.Sprintf("byte %d bit %d", i, bit))
			b[i] ^= 1 << bit
		}
	}
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}
