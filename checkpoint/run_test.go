package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/frame"
)

var update = flag.Bool("update", false, "write the golden files again")

func sealBlock(b []byte, run uint64, number uint32) {
	binary.LittleEndian.PutUint64(b[blockSum:], xxh3.HashSeed(b[:blockSum], run<<32+uint64(number)))
}

// sorted returns n entries with the hashes of numbers, in order.
func sorted(n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{
			Hash:   HashKey([16]byte{1}, []byte("ns"), fmt.Append(nil, i)),
			Record: uint32(i), Revision: uint64(i/2 + 1), Offset: int64(16384 + 8*i),
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Compare(&b) })
	return entries
}

func sample() *Checkpoint {
	return &Checkpoint{
		Resume: frame.Place{Offset: 0x5000, Revision: 9, Digest: 0xD1}, Previous: frame.Place{Offset: 0x4100, Revision: 4, Digest: 0xD2},
		Blob: frame.Place{Offset: 0x4200, Revision: 5, Digest: 0xD3}, Floor: frame.Place{Offset: 0x4000},
		Fence: 3, Run: [32]byte{0xAA, 31: 0xBB}, Generation: 1, Features: frame.Features{Compat: frame.FeatureKeys},
		Index: Index{NextRun: 5, Since: 2, Runs: []Run{
			{Number: 4, Level: 0, Role: Incoming, Entries: 100, Last: 0xFF00 << 48, Extents: []Extent{{0x4800, 0x11 << 56, 1}}},
			{Number: 1, Level: 1, Role: Main, Entries: 31*BlockEntries + 1, Last: 0xFE << 56, Extents: []Extent{{0x4300, 0x01 << 56, 31}, {0x4700, 0xFD << 56, 1}}},
		}},
	}
}

// TestCheckpoint_RoundTrip covers L7: one encoding, and none other is taken.
func TestCheckpoint_RoundTrip(t *testing.T) {
	b := sample().Encode()
	c, err := Decode(b)
	if err != nil || fmt.Sprint(c) != fmt.Sprint(*sample()) || !bytes.Equal(c.Encode(), b) {
		t.Fatalf("%+v, %v", c, err)
	}
	for n := range b {
		if _, err := Decode(b[:n]); err == nil {
			t.Fatalf("cut at %d it decodes", n)
		}
	}
	if _, err := Decode(append(b[:len(b):len(b)], 0)); err == nil {
		t.Fatal("with a byte behind it it decodes")
	}
	for i := range b {
		b[i] ^= 0x80
		if c, err := Decode(b); err == nil && !bytes.Equal(c.Encode(), b) {
			t.Fatalf("byte %d changed: decodes to something else", i)
		}
		b[i] ^= 0x80
	}
	binary.LittleEndian.PutUint32(b, Version+1)
	if _, err := Decode(b); !errors.Is(err, frame.ErrUnsupported) {
		t.Fatal(err)
	}
}

// TestBlock_EveryBit_L2 covers L2: no bit of a block may change.
func TestBlock_EveryBit_L2(t *testing.T) {
	r := Run{Number: 3}
	p, _ := r.Piece(nil, nil, sorted(50), true)
	b := p[PieceHeader:]
	if _, err := DecodeBlock(b, 3, 0); err != nil {
		t.Fatal(err)
	}
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if _, err := DecodeBlock(b, 3, 0); !errors.Is(err, frame.ErrSum) {
			t.Fatalf("bit %d: %v", i, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	for i := range b[:blockSum] { // under a good sum: refused, or a block in its one encoding
		for _, flip := range []byte{0x01, 0x80, 0xFF} {
			b[i] ^= flip
			sealBlock(b, 3, 0)
			if k, err := DecodeBlock(b, 3, 0); err == nil && k.Len != 50 {
				t.Fatalf("byte %d: %d entries", i, k.Len)
			}
			b[i] ^= flip
		}
	}
}

// pieces writes entries as the pieces of a run, and returns the run and its
// blocks.
func pieces(t *rapid.T, entries []Entry) (Run, []Block) {
	r := Run{Number: 9}
	var blocks []Block
	after, rest := &Entry{}, entries
	for len(rest) > 0 {
		p, used := r.Piece(nil, after, rest, true)
		r.Place(int64(len(r.Extents)) * 1000)
		for b := p[PieceHeader:]; len(b) > 0; b = b[BlockSize:] {
			k, err := DecodeBlock(b[:BlockSize], 9, uint32(len(blocks)))
			if err != nil {
				t.Fatal(err)
			}
			blocks = append(blocks, k)
		}
		after, rest = &rest[used-1], rest[used:]
	}
	if r.Entries != uint64(len(entries)) || int(r.Blocks()) != len(blocks) {
		t.Fatalf("%d entries in %d blocks, %d", r.Entries, r.Blocks(), len(blocks))
	}
	return r, blocks
}

// TestRun_GuessIsWithinOne_L39 covers what bounds lookups: whatever the hashes
// are, also far from uniform, a hash is in the block that is guessed or beside
// it, but for hashes that fill blocks.
func TestRun_GuessIsWithinOne_L39(t *testing.T) {
	all := sorted(6000)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, len(all)).Draw(t, "entries")
		mask := rapid.SampledFrom([]uint64{1<<64 - 1, 1 << 63, 0xFFFF << 48, 0xF0F0F0F0F0F0F0F0, 0xFF}).Draw(t, "mask")
		crowd := rapid.IntRange(0, 4).Draw(t, "crowd") // towards zero, more and more
		entries := slices.Clone(all[:n])
		for i := range entries {
			prefix := entries[i].Hash.Prefix() & mask
			for range crowd {
				prefix, _ = bits.Mul64(prefix, prefix)
			}
			binary.BigEndian.PutUint64(entries[i].Hash[:], prefix)
		}
		slices.SortFunc(entries, func(a, b Entry) int { return a.Compare(&b) })
		r, blocks := pieces(t, entries)
		starts := []uint32{0}
		for _, x := range r.Extents {
			starts = append(starts, starts[len(starts)-1]+x.Blocks)
		}
		for i := range 60 {
			e := entries[(i*7919)%n]
			at := slices.IndexFunc(entries, func(o Entry) bool { return o.Hash == e.Hash })
			x := slices.IndexFunc(r.Extents, func(x Extent) bool { return x.First >= e.Hash.Prefix() })
			if x < 0 {
				x = len(r.Extents)
			}
			if x = max(x-1, 0); e.Hash.Prefix() < r.Extents[x].First {
				continue
			}
			got := int(starts[x] + r.Guess(x, starts[x], e.Hash.Prefix()))
			want := at / BlockEntries
			ties := slices.IndexFunc(entries, func(o Entry) bool { return o.Hash.Prefix() == e.Hash.Prefix() }) / BlockEntries
			if got < ties-1 || got > want+1 {
				t.Fatalf("block %d, want %d of %d", got, want, len(blocks))
			}
		}
	})
}

// TestHashKey_Golden pins how keys are hashed: it is part of the format.
func TestHashKey_Golden(t *testing.T) {
	key := [16]byte{0x10, 15: 0x1F}
	want := sha256.Sum256([]byte(string(key[:]) + "\x02\x00ns" + "key"))
	if got := HashKey(key, []byte("ns"), []byte("key")); !bytes.Equal(got[:], want[:15]) {
		t.Fatalf("%x, want %x", got, want)
	}
	if HashKey(key, []byte("n"), []byte("skey")) == HashKey(key, []byte("ns"), []byte("key")) {
		t.Error("a namespace runs into the key")
	}
}

// field is a line of a byte table.
type field struct {
	offset, size int
	meaning      string
}

// TestLayout_MatchesFormat_L7 holds the byte tables of this package against
// those of docs/FORMAT.md.
func TestLayout_MatchesFormat_L7(t *testing.T) {
	text, err := os.ReadFile("../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for title, fields := range layout(t) {
		_, section, ok := strings.Cut(string(text), "### "+title)
		if !ok {
			t.Errorf("docs/FORMAT.md has no %q", title)
			continue
		}
		section, _, _ = strings.Cut(section, "\n### ")
		for _, f := range fields {
			if line := fmt.Sprintf("| %d | %d | %s |", f.offset, f.size, f.meaning); !strings.Contains(section, line) {
				t.Errorf("%s lacks %s", title, line)
			}
		}
	}
}

// layout reads the tables out of the source: constants under a comment that
// begins "Byte layout of".
func layout(t *testing.T) map[string][]field {
	titles := map[string]string{
		"Byte layout, little-endian": "Checkpoint", "Byte layout of a run in the list": "Run in a checkpoint",
		"Byte layout of an extent": "Extent in a checkpoint", "Byte layout of a piece": "Piece of an index run",
		"Byte layout of a block": "Block of an index run", "Byte layout of an entry": "Entry of a block", "Byte layout of a key": "Key",
	}
	tables := map[string][]field{}
	for _, name := range []string{"checkpoint.go", "run.go"} {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		title := ""
		for line := range strings.Lines(string(src)) {
			if strings.HasPrefix(line, "// Byte layout") {
				for begins, is := range titles {
					if strings.HasPrefix(line[3:], begins) && (title == "" || len(begins) > 20) {
						title = is
					}
				}
			}
			if strings.HasPrefix(line, ")") {
				title = ""
			}
			var f field
			var id string
			if _, err := fmt.Sscanf(strings.TrimSpace(line), "%s = %d // %d", &id, &f.offset, &f.size); err == nil && title != "" {
				_, rest, _ := strings.Cut(line, "// ")
				_, f.meaning, _ = strings.Cut(strings.TrimSpace(rest), " ")
				tables[title] = append(tables[title], f)
			}
		}
	}
	if len(tables) != len(titles) {
		t.Fatalf("%d tables of %d", len(tables), len(titles))
	}
	return tables
}

// TestGolden_L7 covers L7: one file of commented hex for each structure.
func TestGolden_L7(t *testing.T) {
	r := Run{Number: 7}
	piece, _ := r.Piece(nil, nil, sorted(3), true)
	tables := layout(t)
	for name, g := range map[string]struct {
		bytes []byte
		parts []string // tables, one behind the other
	}{
		"checkpoint": {sample().Encode(), []string{
			"Checkpoint", "Run in a checkpoint", "Extent in a checkpoint", "Run in a checkpoint", "Extent in a checkpoint", "Extent in a checkpoint",
		}},
		"key":   {AppendKey(nil, Key{2, []byte("ns"), []byte("key")}), []string{"Key"}},
		"piece": {piece, []string{"Piece of an index run", "Block of an index run"}},
	} {
		var text strings.Builder
		rest, at := g.bytes, 0
		for _, part := range g.parts {
			fmt.Fprintf(&text, "# %s\n", strings.ToLower(part))
			n := 0
			for _, f := range tables[part] {
				fmt.Fprintf(&text, "%5d: %s # %s\n", at+f.offset, hex.EncodeToString(rest[f.offset:f.offset+f.size]), f.meaning)
				n = f.offset + f.size
			}
			rest, at = rest[n:], at+n
		}
		fmt.Fprintf(&text, "%5d: %s # to the end\n", at, hex.EncodeToString(rest))
		path := filepath.Join("testdata", name+".hex")
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text.String() != string(want) {
			t.Errorf("%s: the bytes changed", name)
		}
	}
}
