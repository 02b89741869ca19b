package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

func firstRecord(t testing.TB, body []byte) Record {
	t.Helper()
	for r := range Records(body) {
		return r
	}
	t.Fatal("no record")
	return Record{}
}

// stored makes a record of bytes that claim to be compressed.
func stored(codec Codec, raw uint32, data []byte) Record {
	return Record{Kind: 1, Flags: uint32(codec) << codecShift, Raw: raw, Sum: xxh3.Hash(data), Data: data}
}

func TestRecord_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var payloads [][]byte
		var gr testGroup
		for range rapid.IntRange(1, 5).Draw(t, "records") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "payload")
			p = bytes.Repeat(p, rapid.IntRange(1, 60).Draw(t, "times"))
			codec := rapid.SampledFrom([]Codec{Plain, S2, Zstd}).Draw(t, "codec")
			flags := rapid.SampledFrom([]uint32{0, FlagRequired}).Draw(t, "flags")
			before := bytes.Clone(gr.body)
			gr.body = AppendRecord(gr.body, 5, flags, codec, p)
			if !bytes.HasPrefix(gr.body, before) || len(gr.body)%8 != 0 {
				t.Fatal("what was appended before changed")
			}
			payloads = append(payloads, p)
		}
		history(0, 0, gr)
		i := 0
		var again []byte
		prefix := []byte("kept")
		for r := range Records(gr.body) {
			got, err := r.Payload(bytes.Clone(prefix), math.MaxInt64)
			if r.Codec() != Plain {
				if !bytes.HasPrefix(got, prefix) {
					t.Fatalf("record %d: %v, dst is gone", i, err)
				}
				got = got[len(prefix):]
			}
			if err != nil || !bytes.Equal(got, payloads[i]) || r.Kind != 5 {
				t.Fatalf("record %d: %v", i, err)
			}
			if r.Codec() != Plain && !pays(len(r.Data), len(got)) {
				t.Fatalf("record %d: %d bytes stored as %d", i, len(got), len(r.Data))
			}
			if RecordSize(len(r.Data)) != int64(RecordHeaderSize+(len(r.Data)+7)/8*8) {
				t.Fatalf("record %d: size %d", i, RecordSize(len(r.Data)))
			}
			again = AppendStored(again, r)
			i++
		}
		if i != len(payloads) || !bytes.Equal(again, gr.body) {
			t.Fatal("encoding decoded records gives other bytes")
		}
	})
}

// TestRecord_CompressesWhenItPays: L10, exactly a tenth is enough.
func TestRecord_CompressesWhenItPays(t *testing.T) {
	for _, c := range []struct {
		packed, raw int
		want        bool
	}{{90, 100, true}, {91, 100, false}, {9, 10, true}, {10, 10, false}, {8, 9, true}, {90, 101, true}, {91, 101, false}, {1, 1, false}, {0, 1, true}, {120, 100, false}} {
		if got := pays(c.packed, c.raw); got != c.want {
			t.Errorf("%d for %d: %v", c.packed, c.raw, got)
		}
	}
	for _, codec := range []Codec{S2, Zstd} {
		for _, random := range []int{0, 1, 900, 4096} {
			data := append(pattern(random, 6), make([]byte, 4096-random)...)
			r := firstRecord(t, AppendRecord(nil, 1, FlagRequired, codec, data))
			want, raw := codec, uint32(len(data))
			if random == 4096 {
				want, raw = Plain, 0
			}
			if r.Codec() != want || r.Raw != raw || r.Flags&0xFF != FlagRequired || r.Sum != xxh3.Hash(r.Data) {
				t.Errorf("codec %d, %d random bytes: %d, raw %d, flags %#x", codec, random, r.Codec(), r.Raw, r.Flags)
			}
		}
		if r := firstRecord(t, AppendRecord(nil, 1, 0, codec, nil)); r.Codec() != Plain || r.Raw != 0 {
			t.Errorf("codec %d: an empty payload is compressed", codec)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown codec is written")
		}
	}()
	AppendRecord(nil, 1, 0, Zstd+1, []byte("x"))
}

// TestRecord_Refused: L4 and L10, what is no payload says so.
func TestRecord_Refused(t *testing.T) {
	text := []byte(strings.Repeat("tidemark ", 100))
	s := s2.Encode(nil, text)
	e, _ := zstd.NewWriter(nil)
	z := e.EncodeAll(text, nil)
	n := uint32(len(text))
	streamed := func() []byte { // a frame that does not say how long it is
		var b bytes.Buffer
		e.Reset(&b)
		_, _ = e.Write(text)
		_ = e.Flush()
		_ = e.Close()
		return b.Bytes()
	}()
	for name, c := range map[string]struct {
		r    Record
		want error
	}{
		"s2":                  {stored(S2, n, s), nil},
		"zstd":                {stored(Zstd, n, z), nil},
		"required":            {Record{Flags: FlagRequired, Data: text}, nil},
		"unknown codec":       {stored(Zstd+1, n, z), ErrUnsupported},
		"last codec":          {stored(255, n, z), ErrUnsupported},
		"unknown low flag":    {Record{Flags: 2, Data: text}, ErrUnsupported},
		"unknown high flag":   {Record{Flags: 1 << 16, Data: text}, ErrUnsupported},
		"unknown top flag":    {Record{Flags: 1 << 31, Data: text}, ErrUnsupported},
		"plain with a raw":    {Record{Raw: 5, Data: text}, ErrField},
		"s2 without raw":      {stored(S2, 0, s2.Encode(nil, nil)), ErrField},
		"zstd without raw":    {stored(Zstd, 0, e.EncodeAll(nil, nil)), ErrField},
		"s2 one less":         {stored(S2, n-1, s), ErrField},
		"s2 one more":         {stored(S2, n+1, s), ErrField},
		"zstd one less":       {stored(Zstd, n-1, z), ErrField},
		"zstd one more":       {stored(Zstd, n+1, z), ErrField},
		"s2 cut":              {stored(S2, n, s[:len(s)-1]), ErrField},
		"zstd cut":            {stored(Zstd, n, z[:len(z)-1]), ErrField},
		"zstd without length": {stored(Zstd, n, streamed), ErrField},
		"two zstd frames":     {stored(Zstd, n, append(bytes.Clone(z), z...)), ErrField},
		"s2 as zstd":          {stored(Zstd, n, s), ErrField},
		"no s2":               {stored(S2, n, nil), ErrField},
		"no zstd":             {stored(Zstd, n, nil), ErrField},
	} {
		got, err := c.r.Payload(nil, 1<<20)
		if !errors.Is(err, c.want) || err == nil && !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes, %v, want %v", name, len(got), err, c.want)
		}
		// Decoders are used again: a refusal must leave nothing behind (C16).
		for _, good := range []Record{stored(S2, n, s), stored(Zstd, n, z)} {
			if got, err := good.Payload(nil, int64(n)); err != nil || !bytes.Equal(got, text) {
				t.Fatalf("after %s: %v", name, err)
			}
		}
	}
	r := stored(S2, n, s)
	_, err := r.Payload(nil, int64(n)-1)
	wantErr(t, err, ErrField)
	_, err = r.Payload(nil, -1)
	wantErr(t, err, ErrField)
}

// zstdFrame is a frame that says it holds n bytes, of blocks that repeat one
// byte up to n or 128 KiB times.
func zstdFrame(n uint64, blocks int) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{0x28, 0xB5, 0x2F, 0xFD, 0xE0}, n)
	for i := range blocks {
		head := uint32(min(n, 128<<10))<<3 | 1<<1
		if i == blocks-1 {
			head |= 1
		}
		b = append(b, byte(head), byte(head>>8), byte(head>>16), 'x')
	}
	return b
}

// TestRecord_LengthBombs: C9, a few stored bytes that claim to be huge take no
// memory.
func TestRecord_LengthBombs(t *testing.T) {
	s2Bomb := func(n uint64) []byte { return append(binary.AppendUvarint(nil, n), 0, 'x') }
	zstdBomb := func(n uint64) []byte { return zstdFrame(n, 1) }
	beyond := zstdFrame(128<<10, 1)
	binary.LittleEndian.PutUint64(beyond[5:], 100)
	second := append(zstdFrame(100, 1), zstdFrame(1<<28, 2048)...)
	window := []byte{0x28, 0xB5, 0x2F, 0xFD, 0x80, 0xF8, 0, 1, 0, 0, 0x03, 0x08, 0x00, 'x'} // 2^41 bytes of window for 256
	for name, c := range map[string]struct {
		r     Record
		limit int64
	}{
		"s2 over the limit":        {stored(S2, 1<<30, s2Bomb(1<<30)), 16 << 20},
		"s2 over the hard limit":   {stored(S2, math.MaxUint32, s2Bomb(math.MaxUint32)), math.MaxInt64},
		"s2 longer than it says":   {stored(S2, 100, s2Bomb(1<<30)), 16 << 20},
		"s2 beyond 32 bits":        {stored(S2, 100, s2Bomb(1<<40)), 16 << 20},
		"zstd over the limit":      {stored(Zstd, 1<<30, zstdBomb(1<<30)), 16 << 20},
		"zstd over the hard limit": {stored(Zstd, math.MaxUint32, zstdBomb(math.MaxUint32)), math.MaxInt64},
		"zstd longer than it says": {stored(Zstd, 100, zstdBomb(1<<30)), 16 << 20},
		"zstd with every bit":      {stored(Zstd, 100, zstdBomb(math.MaxUint64)), 16 << 20},
		"zstd block beyond":        {stored(Zstd, 100, beyond), 16 << 20},
		"zstd second frame":        {stored(Zstd, 100, second), 16 << 20},
		"zstd with a huge window":  {stored(Zstd, 256, window), 16 << 20},
	} {
		_, _ = c.r.Payload(nil, c.limit) // fills the pools
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.r.Payload(nil, c.limit)
		runtime.ReadMemStats(&after)
		wantErr(t, err, ErrField)
		if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 {
			t.Errorf("%s: %d bytes allocated", name, took)
		}
	}
}

// TestCheck_HostileLengths: a record's length is held against the bytes there.
func TestCheck_HostileLengths(t *testing.T) {
	gr := history(0, 0, commitOf(pattern(20, 1), pattern(9, 2)))[0]
	for _, n := range []uint32{0, 19, 21, 24, 25, 1 << 20, MaxRecordBytes, MaxRecordBytes + 1, math.MaxInt32, math.MaxUint32 - 7, math.MaxUint32} {
		body := bytes.Clone(gr.body)
		binary.LittleEndian.PutUint32(body[recordLength:], n)
		if gr.Check(body) == nil {
			t.Errorf("length %d: unseen", n)
		}
		gr.ChainDigest(body)
		for r := range Records(body) {
			if len(r.Data) > len(body) {
				t.Errorf("length %d: %d bytes", n, len(r.Data))
			}
		}
	}
	wantErr(t, gr.Check(append(bytes.Clone(gr.body), make([]byte, 8)...)), ErrField)
	wantErr(t, gr.Check(gr.body[:len(gr.body)-8]), ErrField)
	wantErr(t, gr.Check(nil), ErrField)
	more := gr
	more.Count++
	wantErr(t, more.Check(gr.body), ErrField)
	fewer := gr
	fewer.Count--
	wantErr(t, fewer.Check(gr.body), ErrField)
	other := gr
	other.Digest++
	wantErr(t, other.Check(gr.body), ErrDigest)
	padded := bytes.Clone(gr.body)
	padded[RecordHeaderSize+20] = 1
	wantErr(t, gr.Check(padded), ErrPadding)
	flipped := bytes.Clone(gr.body)
	flipped[RecordHeaderSize]++
	wantErr(t, gr.Check(flipped), ErrSum)
}

func TestRecords_StopsEarly(t *testing.T) {
	n := 0
	for range Records(commitOf(nil, nil, nil).body) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d records", n)
	}
	// Appending to a payload must not write over the record behind it.
	body := commitOf([]byte("a"), []byte("b")).body
	if r := firstRecord(t, body); cap(r.Data) != 1 {
		t.Errorf("a payload of 1 byte has room for %d", cap(r.Data))
	}
}

// TestRecord_Concurrent: callers sum and compress their records at the same
// time. Meant for the race detector.
func TestRecord_Concurrent(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			data := bytes.Repeat(pattern(64, uint64(i)), 100)
			for range 30 {
				var gr testGroup
				for j := range 30 {
					gr.body = AppendRecord(gr.body, 1, 0, Codec(j%3), data)
				}
				gr = history(0, 0, gr)[0]
				if err := gr.Check(gr.body); err != nil {
					t.Error(err)
				}
				for r := range Records(gr.body) {
					if got, err := r.Payload(nil, 1<<20); err != nil || !bytes.Equal(got, data) {
						t.Error("payload changed", err)
					}
				}
			}
		})
	}
	wg.Wait()
}
