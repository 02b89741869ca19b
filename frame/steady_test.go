package frame

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// slowDigest is the digest as the specification has it.
func slowDigest(h *GroupHeader) func(body []byte) uint64 {
	return func(body []byte) uint64 {
		var le []byte
		for _, v := range []uint64{h.Prev, uint64(h.Flags), h.Revision, uint64(h.Count)} {
			for i := range 8 {
				le = append(le, byte(v>>(8*i)))
			}
		}
		for len(body) > 0 {
			n := int(body[0]) | int(body[1])<<8 | int(body[2])<<16
			le = append(le, body[:24]...)
			body = body[24+(n+7)/8*8:]
		}
		return xxh3.Hash(le)
	}
}

// TestDigest_Definition covers the lengths at which the digest changes its way
// of hashing.
func TestDigest_Definition(t *testing.T) {
	for _, n := range []int{1, 2, 9, chainInline - 1, chainInline, chainInline + 1, 2*chainInline + 1, 45, 300, 1000} {
		gr := history(6, 0x1234, commitOf(slices.Repeat([][]byte{[]byte("x"), nil, pattern(30, 1)}, n)[:n]...))[0]
		if want := slowDigest(&gr.GroupHeader)(gr.body); gr.Digest != want {
			t.Errorf("%d records: %#x, want %#x", n, gr.Digest, want)
		}
		// A refused group leaves nothing behind for the next one (C16).
		bad := bytes.Clone(gr.body)
		bad[len(bad)-1] ^= 1
		if gr.Check(bad) == nil {
			t.Errorf("%d records: damage unseen", n)
		}
		if err := gr.Check(gr.body); err != nil {
			t.Errorf("%d records: %v", n, err)
		}
	}
}

// TestDigest_IndependentOfPlaceAndTime: L36, the same batches give the same
// digests wherever and whenever they are written, whatever lies between.
func TestDigest_IndependentOfPlaceAndTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batches := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 3000), 1, 4), 1, 5).Draw(t, "batches")
		digests := func(side string) (out []uint64) {
			id := testIdentity(rapid.SampledFrom(pageSizes[:3]).Draw(t, side+" page"), rapid.SampledFrom(aligns).Draw(t, side+" align"))
			id.Salt = rapid.Uint64Range(1, 1<<63).Draw(t, side+" salt")
			g := id.Geometry()
			var groups []testGroup
			for _, sizes := range batches {
				if rapid.Bool().Draw(t, side+" checkpoint") {
					groups = append(groups, testGroup{GroupHeader: GroupHeader{Flags: FlagDerived}, body: oneRecord(50).body})
				}
				var gr testGroup
				for _, n := range sizes {
					gr.body = AppendRecord(gr.body, 1, 0, Plain, pattern(n, 3))
				}
				groups = append(groups, gr)
			}
			for i := range groups {
				groups[i].Epoch = rapid.Uint64Max(1<<63-1).Draw(t, side+" epoch")
				groups[i].Time = rapid.Int64().Draw(t, side+" time")
			}
			history(3, 11, groups...)
			end := g.HeaderArea() + int64(id.PageSize)*rapid.Int64Range(0, 1<<30).Draw(t, side+" place")
			b := NewBuilder(g)
			raw := layOut(b, end, 3, groups)
			got, err := walk(g, raw, b.Offset(), end, groups[0], len(groups))
			if err != nil {
				t.Fatal(err)
			}
			for _, gr := range got {
				if !gr.Derived() {
					out = append(out, gr.Digest)
				}
			}
			return out
		}
		if a, b := digests("a"), digests("b"); !slices.Equal(a, b) || len(a) != len(batches) {
			t.Fatalf("%x and %x", a, b)
		}
	})
}

// TestDigest_Covers: everything that is history changes the digest.
func TestDigest_Covers(t *testing.T) {
	gr := history(6, 5, commitOf([]byte("a"), []byte("b")))[0]
	for name, change := range map[string]func(h *GroupHeader, body []byte){
		"previous digest": func(h *GroupHeader, _ []byte) { h.Prev++ },
		"flags":           func(h *GroupHeader, _ []byte) { h.Flags = FlagDerived },
		"revision":        func(h *GroupHeader, _ []byte) { h.Revision++ },
		"count":           func(h *GroupHeader, _ []byte) { h.Count++ },
		"raw length":      func(_ *GroupHeader, b []byte) { b[recordRaw]++ },
		"kind":            func(_ *GroupHeader, b []byte) { b[recordKind]++ },
		"record flags":    func(_ *GroupHeader, b []byte) { b[recordFlags]++ },
		"sum":             func(_ *GroupHeader, b []byte) { b[recordSum]++ },
	} {
		h, body := gr.GroupHeader, bytes.Clone(gr.body)
		change(&h, body)
		if h.ChainDigest(body) == gr.Digest {
			t.Errorf("%s is not covered", name)
		}
	}
}

// TestSteadyState_NoAllocation: L21 and L45 at the level of bytes.
func TestSteadyState_NoAllocation(t *testing.T) {
	g := testGeometry(4096, 8)
	groups := history(0, 0, commitOf(pattern(300, 1), pattern(5000, 2)), oneRecord(9000), commitOf(slices.Repeat([][]byte{[]byte("x")}, 60)...))
	b := NewBuilder(g)
	raw := bytes.Clone(layOut(b, g.HeaderArea(), 0, groups))
	start := g.HeaderArea() + PageHeaderSize
	size := g.End(start, groups[0].Body) - start
	scratch, body := make([]byte, size), make([]byte, 0, 1<<16)
	text := bytes.Repeat([]byte("tidemark "), 100)
	packed := [2]Record{
		firstRecord(t, AppendRecord(nil, 1, 0, S2, text)),
		firstRecord(t, AppendRecord(nil, 1, 0, Zstd, text)),
	}
	for name, f := range map[string]func(){
		"DecodeGroup": func() { _, _ = g.DecodeGroup(raw[32:], start) },
		"DecodePage":  func() { _, _ = g.DecodePage(raw, g.HeaderArea()) },
		"Check":       func() { _ = groups[0].Check(groups[0].body) },
		"Check long":  func() { _ = groups[2].Check(groups[2].body) },
		"ChainDigest": func() { groups[2].ChainDigest(groups[2].body) },
		"Gather": func() {
			copy(scratch, raw[32:])
			if _, bad := g.Gather(scratch, &groups[0].GroupHeader, start); bad != 0 {
				t.Error("bad page")
			}
		},
		"CheckGap":          func() { _, _ = g.CheckGap(raw[:32], g.HeaderArea(), 0) },
		"Builder":           func() { layOut(b, g.HeaderArea(), 0, groups) },
		"AppendRecord":      func() { body = AppendRecord(body[:0], 1, 0, Plain, raw[:4000]) },
		"AppendRecord S2":   func() { body = AppendRecord(body[:0], 1, 0, S2, text) },
		"AppendRecord zstd": func() { body = AppendRecord(body[:0], 1, 0, Zstd, text) },
		"Payload S2":        func() { _, _ = packed[0].Payload(body[:0], 1<<20) },
		"Payload zstd":      func() { _, _ = packed[1].Payload(body[:0], 1<<20) },
		"Records": func() {
			for r := range Records(groups[2].body) {
				_, _ = r.Payload(nil, 1<<20)
			}
		},
	} {
		if strings.HasSuffix(name, "zstd") && poolsForget() {
			continue
		}
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// poolsForget reports whether this is a build, that of the race detector, in
// which a sync.Pool drops things at random.
func poolsForget() bool {
	made := 0
	p := sync.Pool{New: func() any { made++; return new(int) }}
	for range 100 {
		p.Put(p.Get())
	}
	return made > 5
}

func TestBuilder_Trim(t *testing.T) {
	g := testGeometry(4096, 8)
	b := NewBuilder(g)
	layOut(b, g.HeaderArea(), 0, history(0, 0, oneRecord(100_000)))
	b.Trim(1 << 20)
	if cap(b.buf) == 0 {
		t.Error("a buffer below the limit is gone")
	}
	b.Trim(1 << 10)
	if cap(b.buf) != 0 {
		t.Error("a buffer over the limit is kept")
	}
	b.Reset(g.HeaderArea(), 0)
	if b.Seal(0); len(b.Bytes()) != 0 || b.Offset() != g.HeaderArea() {
		t.Error("a write of no groups has bytes")
	}
}

func TestGeometry_Pages(t *testing.T) {
	g := testGeometry(4096, 512)
	if g.PageSize() != 4096 || g.Page(4096*7+1) != 7 || g.PageStart(4096*7+1) != 4096*7 || g.WriteStart(513) != 1024 || g.WriteEnd(512) != 512 {
		t.Error("a page is not where it is")
	}
	if !IsZero(nil) || IsZero([]byte{0, 0, 1}) || IsZero(append(make([]byte, 8), 1)) {
		t.Error("IsZero")
	}
}
