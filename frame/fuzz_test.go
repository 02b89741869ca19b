package frame

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/klauspost/compress/s2"
)

// What these hold: no panic, no result beyond the input's bounds, and encoding
// what decodes gives the bytes back. Sums are made to hold, so that the fields
// behind them are reached.

func FuzzIdentity(f *testing.F) {
	// Short inputs: the fuzzer spends its time on making long ones short.
	for _, name := range []string{"identity", "identity-fork", "identity-version-2"} {
		f.Add(bytes.TrimRight(loadHex(f, name)[:idSum], "\x00"), true)
	}
	f.Add([]byte(identityMagic), false)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal && len(b) < IdentitySize {
			b = reseal(append(bytes.Clone(b), make([]byte, IdentitySize-len(b))...), 0)
		}
		id, err := DecodeIdentity(b)
		if err != nil {
			return
		}
		g := id.Geometry()
		if start := g.Start(g.HeaderArea()); !g.MayStart(start) {
			t.Errorf("the first group cannot start at %d", start)
		}
		if id.Features.UnknownIncompat() == 0 && !bytes.Equal(id.Encode(), b[:IdentitySize]) {
			t.Error("encoding gives other bytes")
		}
	})
}

func FuzzSlot(f *testing.F) {
	g := testGeometry(4096, 8)
	f.Add(loadHex(f, "slot"), true)
	f.Add(make([]byte, SlotSize), false)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if b = bytes.Clone(b); seal && len(b) >= SlotSize {
			reseal(b[:SlotSize], g.spanAt(0).salt+SlotOffsetA)
		}
		s, err := g.DecodeSlot(b, SlotOffsetA)
		if err != nil {
			return
		}
		if start := g.Start(s.Durable.Offset); !g.MayStart(start) {
			t.Errorf("nothing can start at %d", start)
		}
		out := pattern(SlotSize, 1)
		if g.PutSlot(out, SlotOffsetA, &s); s.Features.UnknownIncompat() == 0 && !bytes.Equal(out, b[:SlotSize]) {
			t.Error("encoding gives other bytes")
		}
	})
}

func FuzzPage(f *testing.F) {
	g := testGeometry(4096, 8)
	f.Add(loadHex(f, "page"), int64(5*4096), true)
	f.Add(make([]byte, PageHeaderSize), int64(-4096), false)
	f.Fuzz(func(t *testing.T, b []byte, off int64, seal bool) {
		if b = bytes.Clone(b); seal && len(b) >= PageHeaderSize {
			reseal(b[:PageHeaderSize], g.spanAt(0).salt)
		}
		h, err := g.DecodePage(b, off)
		if err != nil {
			return
		}
		if h.First != 0 && !g.MayStart(off+int64(h.First)) || h.Number*4096 != off {
			t.Errorf("%+v at %d", h, off)
		}
		out := make([]byte, PageHeaderSize)
		if g.PutPage(out, off, h); !bytes.Equal(out, b[:PageHeaderSize]) {
			t.Error("encoding gives other bytes")
		}
	})
}

func FuzzGroup(f *testing.F) {
	g := testGeometry(4096, 8)
	start := g.HeaderArea() + PageHeaderSize
	for _, name := range []string{"group", "group-three-pages", "group-derived", "record-unknown-codec"} {
		f.Add(loadHex(f, name)[PageHeaderSize:], true)
	}
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		b = bytes.Clone(b)
		if seal && len(b) >= GroupHeaderSize {
			reseal(b[:GroupHeaderSize], g.spanAt(start).salt+uint64(start))
		}
		h, err := g.DecodeGroup(b, start)
		if err != nil {
			return
		}
		end := g.End(start, h.Body)
		if end < start+GroupHeaderSize+h.Body || !g.MayEnd(end) {
			t.Fatalf("a body of %d bytes ends at %d", h.Body, end)
		}
		raw := b[:min(end-start, int64(len(b)))]
		body, _ := g.Gather(bytes.Clone(raw), &h, start)
		if int64(len(body)) > h.Body {
			t.Fatalf("body of %d bytes, want %d", len(body), h.Body)
		}
		if h.Check(body) != nil {
			h.Digest = h.ChainDigest(body)
			if h.Check(body) != nil {
				return
			}
		}
		var again []byte
		for r := range Records(body) {
			again = AppendStored(again, r)
			if p, err := r.Payload(nil, 1<<16); err == nil && len(p) > max(1<<16, len(body)) {
				t.Errorf("payload of %d bytes", len(p))
			}
		}
		if !bytes.Equal(again, body) {
			t.Error("encoding records gives other bytes")
		}
	})
}

func FuzzRecordPayload(f *testing.F) {
	text := bytes.Repeat([]byte("tide "), 40)
	f.Add(uint32(S2)<<codecShift, uint32(len(text)), s2.Encode(nil, text))
	f.Add(uint32(Plain), uint32(0), text)
	for r := range Records(benchPacked(Zstd, text)) {
		f.Add(r.Flags, r.Raw, bytes.Clone(r.Data))
	}
	f.Fuzz(func(t *testing.T, flags, raw uint32, data []byte) {
		const limit = 1 << 16
		r := Record{Flags: flags, Raw: raw, Data: data}
		got, err := r.Payload(nil, limit)
		if err != nil {
			return
		}
		if r.Codec() == Plain && !bytes.Equal(got, data) || r.Codec() != Plain && (len(got) != int(raw) || raw > limit) {
			t.Fatalf("%d bytes, raw %d", len(got), raw)
		}
		again := AppendRecord(nil, 1, 0, r.Codec(), got)
		for r := range Records(again) {
			if p, err := r.Payload(nil, limit); err != nil || !bytes.Equal(p, got) {
				t.Fatal(fmt.Errorf("round trip: %w", err))
			}
		}
	})
}

func benchPacked(codec Codec, data []byte) []byte { return AppendRecord(nil, 1, 0, codec, data) }
