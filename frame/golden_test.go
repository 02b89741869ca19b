package frame

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

var update = flag.Bool("update", false, "write the golden files again")

// A golden file is lines of "offset: bytes # what they are". A byte is two hex
// digits, or "00*88" for 88 of them. Lines that begin with # are for the
// reader.

func loadHex(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		off, tokens, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseInt(strings.TrimSpace(off), 10, 64); err != nil || n != int64(len(out)) {
			t.Fatalf("%s: line %q is not at %d", name, line, len(out))
		}
		for tok := range strings.FieldsSeq(tokens) {
			digits, times, many := strings.Cut(tok, "*")
			b, err := hex.DecodeString(digits)
			n := 1
			if many && err == nil {
				n, err = strconv.Atoi(times)
			}
			if err != nil || len(b) != 1 {
				t.Fatalf("%s: token %q", name, tok)
			}
			out = append(out, bytes.Repeat(b, n)...)
		}
	}
	return out
}

// listing writes bytes down with what they are.
type listing struct {
	text   strings.Builder
	n      int
	tables map[string][]field
}

func (l *listing) bytes(b []byte, what string) {
	for len(b) > 0 {
		n := min(16, len(b))
		run := 1
		for run < len(b) && b[run] == b[0] {
			run++
		}
		tokens := fmt.Sprintf("% x", b[:n])
		if run > 8 {
			n, tokens = run, fmt.Sprintf("%02x*%d", b[0], run)
		}
		fmt.Fprintf(&l.text, "%5d: %-48s", l.n, tokens)
		if what != "" {
			l.text.WriteString("# " + what)
		}
		l.text.WriteByte('\n')
		l.n, b, what = l.n+n, b[n:], ""
	}
}

func (l *listing) structure(b []byte, title string) {
	fmt.Fprintf(&l.text, "# %s\n", strings.ToLower(title))
	for _, f := range l.tables[title] {
		l.bytes(b[f.offset:f.offset+f.size], f.meaning)
	}
}

// write lists one write of groups that begins at off, page headers where they
// fall.
func (l *listing) write(g *Geometry, b []byte, off int64, groups []testGroup) {
	pos := off
	next := func(n int, title, what string) {
		for n > 0 {
			if pos%g.pageSize == 0 {
				l.structure(b[pos-off:], "Page header")
				pos += PageHeaderSize
			}
			k := min(int64(n), g.pageSize-pos%g.pageSize)
			piece := b[pos-off : pos-off+k]
			if title != "" && k == structures[title] {
				l.structure(piece, title)
			} else {
				l.bytes(piece, strings.TrimSpace(strings.ToLower(title)+" "+what))
			}
			pos, n, what = pos+k, n-int(k), "continued"
		}
	}
	for _, gr := range groups {
		start := g.Start(pos)
		if start%g.pageSize != PageHeaderSize {
			next(int(start-pos), "", "zeros up to where a group may start")
		}
		next(GroupHeaderSize, "Group header", "")
		for r := range Records(gr.body) {
			next(RecordHeaderSize, "Record header", "")
			next(len(r.Data), "", "payload")
			next(-len(r.Data)&7, "", "zeros to 8")
		}
	}
	l.bytes(b[pos-off:], "zeros up to the alignment")
}

// golden is one file: what it shows, how it is made, and what decoding it must
// give. Bytes that a compressor made are decoded only: another version of it,
// or another machine, may pack them otherwise.
type golden struct {
	name, shows string
	make        func(l *listing) []byte
	check       func(t *testing.T, b []byte)
	packed      bool
}

func goldenIdentity(name, shows string, id *Identity, patch func(b []byte), want error) golden {
	return golden{name: name, shows: shows, make: func(l *listing) []byte {
		b := id.Encode()
		patch(b)
		reseal(b, 0)
		l.structure(b, "Identity")
		return b
	}, check: func(t *testing.T, b []byte) {
		got, err := DecodeIdentity(b)
		wantErr(t, err, want)
		if err == nil && (fmt.Sprint(got) != fmt.Sprint(*id) || !bytes.Equal(got.Encode(), b)) {
			t.Errorf("got %+v", got)
		}
	}}
}

func goldenGroups(name, shows string, groups []testGroup, check func(*testing.T, []testGroup)) golden {
	g := testGeometry(4096, 8)
	last, prev := groups[0].Revision-1, groups[0].Prev
	if groups[0].Derived() {
		last++
	}
	return golden{name: name, shows: shows, make: func(l *listing) []byte {
		b := NewBuilder(g)
		raw := layOut(b, g.HeaderArea(), last, groups)
		l.write(g, raw, b.Offset(), groups)
		return raw
	}, check: func(t *testing.T, raw []byte) {
		got, err := walk(g, raw, g.HeaderArea(), g.HeaderArea(), testGroup{GroupHeader: GroupHeader{Revision: last + 1, Prev: prev}}, len(groups))
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if h := got[i].GroupHeader; h.Time != 1_700_000_000_000_000_000+int64(i) || h.Epoch != 3 || h.DurableEnd != g.HeaderArea() {
				t.Errorf("group %d: %+v", i, h)
			}
		}
		if raw2 := layOut(NewBuilder(g), g.HeaderArea(), last, got); !bytes.Equal(raw2, raw) {
			t.Error("encoding what was decoded gives other bytes")
		}
		check(t, got)
	}}
}

// goldenHeader is a lone group header that a later version might write.
func goldenHeader(name, shows string, patch func(b []byte)) golden {
	g := testGeometry(4096, 8)
	off := g.HeaderArea() + PageHeaderSize
	return golden{name: name, shows: shows, make: func(l *listing) []byte {
		b := make([]byte, GroupHeaderSize)
		g.PutGroup(b, off, &stamp(history(0, 0, commitOf([]byte("later"))))[0].GroupHeader)
		patch(b)
		reseal(b, g.spanAt(off).salt+uint64(off))
		l.structure(b, "Group header")
		return b
	}, check: func(t *testing.T, b []byte) {
		h, err := g.DecodeGroup(b, off)
		wantErr(t, err, ErrUnsupported)
		if h.Epoch != 3 {
			t.Errorf("epoch %d is lost", h.Epoch)
		}
	}}
}

// stamp gives groups the advisory fields the golden files share.
func stamp(groups []testGroup) []testGroup {
	for i := range groups {
		groups[i].Epoch, groups[i].Time = 3, 1_700_000_000_000_000_000+int64(i)
	}
	return groups
}

func sameData(want ...string) func(*testing.T, []testGroup) {
	return func(t *testing.T, got []testGroup) {
		t.Helper()
		var all []string
		for _, gr := range got {
			for r := range Records(gr.body) {
				p, err := r.Payload(nil, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(p))
			}
		}
		if fmt.Sprintf("%q", all) != fmt.Sprintf("%q", want) {
			t.Errorf("payloads %.200q, want %.200q", all, want)
		}
	}
}

func goldens() []golden {
	g := testGeometry(4096, 8)
	plain := testIdentity(16<<10, 8)
	child := testIdentity(4096, 512)
	child.Base = Boundary{[16]byte{0xE0, 15: 0xEF}, 41, 0xBA5E}
	child.MaxSize = 1 << 40
	child.Lineage = []Ancestor{
		{[16]byte{0xF0, 15: 0xFF}, 0x0A11CE, 20480, 44, 0xD1},
		{[16]byte{0xF1, 15: 0xFF}, 0x0B0B, 1 << 20, 90, 0xD2},
	}
	slot, page := testSlot(g), PageHeader{Number: 5, First: 512, Last: 77}
	three := []string{strings.Repeat("A", 4000), strings.Repeat("B", 3982), strings.Repeat("C", 1001)}
	text := strings.Repeat("the tide leaves a line. ", 20)
	var packed, derived testGroup
	packed.body = AppendRecord(packed.body, 1, 0, S2, []byte(text))
	packed.body = AppendRecord(packed.body, 1, FlagRequired, Zstd, []byte(text))
	derived.body = AppendRecord(derived.body, KindCheckpoint, 0, Plain, []byte("checkpoint"))
	derived.Flags = FlagDerived
	odd := func(flags uint32) testGroup {
		return testGroup{body: AppendStored(nil, Record{Kind: 9, Flags: flags, Sum: xxh3.HashString("odd"), Data: []byte("odd")})}
	}
	refused := func(t *testing.T, got []testGroup) {
		r := firstRecord(t, got[0].body)
		_, err := r.Payload(nil, 1<<20)
		wantErr(t, err, ErrUnsupported)
	}
	none := func([]byte) {}
	return []golden{
		goldenIdentity("identity", "the identity of a log of its own, pages of 16 KiB", plain, none, nil),
		goldenIdentity("identity-fork", "the identity of a fork of a fork that begins after an imported point", child, none, nil),
		goldenIdentity("identity-version-2", "an identity of the next format version: must be refused as unsupported", plain,
			func(b []byte) { b[idVersion] = Version + 1 }, ErrUnsupported),
		{
			name: "slot", shows: "a slot at 4096", make: func(l *listing) []byte {
				b := make([]byte, SlotSize)
				g.PutSlot(b, SlotOffsetA, slot)
				l.structure(b, "Slot")
				return b
			}, check: func(t *testing.T, b []byte) {
				if got, err := g.DecodeSlot(b, SlotOffsetA); err != nil || got != *slot {
					t.Errorf("%+v, %v", got, err)
				}
			},
		},
		{
			name: "page", shows: "the header of the page at 20480, pages of 4 KiB", make: func(l *listing) []byte {
				b := make([]byte, PageHeaderSize)
				g.PutPage(b, 5*4096, page)
				l.structure(b, "Page header")
				return b
			}, check: func(t *testing.T, b []byte) {
				if got, err := g.DecodePage(b, 5*4096); err != nil || got != page {
					t.Errorf("%+v, %v", got, err)
				}
			},
		},
		goldenGroups("group", "the first write of a log with pages of 4 KiB: a page header and one commit of two records",
			stamp(history(0, 0, commitOf([]byte("high"), []byte("water mark")))), sameData("high", "water mark")),
		goldenGroups("group-three-pages", "a commit over three pages, and the one after it; a record header straddles a page",
			stamp(history(6, 0x77, commitOf([]byte(three[0]), []byte(three[1]), []byte(three[2])), commitOf(nil))), sameData(append(three, "")...)),
		goldenGroups("group-derived", "a commit, a derived group and a commit: the derived group takes no revision and no place in the chain",
			stamp(history(0, 0, commitOf([]byte("one")), derived, commitOf([]byte("two")))), sameData("one", "checkpoint", "two")),
		func() golden {
			c := goldenGroups("group-compressed", "a commit of the same text as S2 and as zstd",
				stamp(history(0, 0, packed)), sameData(text, text))
			c.packed = true
			return c
		}(),
		goldenGroups("record-unknown-flag", "a record with a flag of a later version: the group is sound, the payload is refused",
			stamp(history(0, 0, odd(2))), refused),
		goldenGroups("record-unknown-codec", "a record with a codec of a later version: the group is sound, the payload is refused",
			stamp(history(0, 0, odd(3<<codecShift))), refused),
		goldenHeader("group-version-2", "a group header of the next format version: must be refused as unsupported",
			func(b []byte) { b[groupVersion] = Version + 1 }),
		goldenHeader("group-unknown-flag", "a group header with a flag of a later version: must be refused as unsupported",
			func(b []byte) { b[groupFlags] = 2 }),
	}
}

// TestGolden: L7 and L8, the same bytes on every machine.
func TestGolden(t *testing.T) {
	names := map[string]bool{}
	for _, c := range goldens() {
		names[c.name+".hex"] = true
		t.Run(c.name, func(t *testing.T) {
			l := &listing{tables: layoutTables(t)}
			made := c.make(l)
			if *update {
				text := fmt.Sprintf("# Format version %d: %s.\n%s", Version, c.shows, l.text.String())
				if err := os.WriteFile(filepath.Join("testdata", c.name+".hex"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.name == "group-three-pages" && !strings.Contains(l.text.String(), "record header continued") {
				t.Error("no record header straddles a page")
			}
			b := loadHex(t, c.name)
			if !c.packed && !bytes.Equal(made, b) {
				t.Error("this version writes other bytes")
			}
			c.check(t, b)
		})
	}
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !names[filepath.Base(f)] {
			t.Errorf("%s belongs to no test", f)
		}
	}
}
