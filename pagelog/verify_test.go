package pagelog

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
)

func TestVerify_SoundShapes(t *testing.T) {
	for name, c := range shapes() {
		r := check(t, c.bytes(5000), 1)
		if !r.Sound() || len(r.Findings) != 0 || r.Head != c.at.rev || r.End != c.at.end || r.Durable != c.proven().end {
			t.Errorf("%s: %s", name, r.describe())
		}
	}
}

// expected says what one wrong bit at off must be called, from how the log was
// made.
func (c *crafted) expected(off int64) string {
	switch {
	case off < frame.SlotOffsetA, off >= frame.IdentityCopyOffset && off < frame.IdentityCopyOffset+frame.IdentitySize,
		off >= frame.SlotOffsetA && off < frame.SlotOffsetA+frame.SlotSize,
		off >= frame.SlotOffsetB && off < frame.SlotOffsetB+frame.SlotSize:
		return "sound"
	case off < c.geo.HeaderArea():
		return ClassCorrupt
	case off >= c.at.end:
		return ClassTorn
	}
	floor := c.geo.HeaderArea()
	for i := range c.slots {
		floor = max(floor, c.slots[i].Durable.Offset)
	}
	var hit craftedGroup
	for _, g := range c.groups {
		if off >= g.from && off < g.end {
			hit = g
		}
		if off < g.start || off >= g.start+frame.GroupHeaderSize {
			floor = max(floor, g.DurableEnd)
		}
	}
	isPage := off%c.geo.PageSize() < frame.PageHeaderSize
	switch {
	case isPage && c.geo.PageStart(off) < floor:
		return ClassCorrupt // the page header alone: its group holds
	case hit.from >= floor:
		return ClassTorn
	case hit.Derived():
		return ClassBridged
	}
	return ClassCorrupt
}

// TestVerify_L51_EveryBit_C11_C17_C18 flips every bit of small logs of every
// shape. Each is found, alone, and called what it is.
func TestVerify_L51_EveryBit_C11_C17_C18(t *testing.T) {
	slowRace(t)
	defer debug.SetGCPercent(debug.SetGCPercent(2000))
	for name, c := range shapes() {
		t.Run(name, func(t *testing.T) {
			b := c.bytes(64)
			for off := range b {
				for bit := range 8 {
					if name != "durable" && int64(off) < c.geo.HeaderArea() && bit != off%64 {
						continue // the header area is alike in all
					}
					b[off] ^= 1 << bit
					r := check(t, b, 1)
					if err := c.judge(int64(off), &r); err != nil {
						t.Fatalf("bit %d of byte %d: %v\n%s", bit, off, err, r.describe())
					}
					b[off] ^= 1 << bit
				}
			}
		})
	}
}

func (c *crafted) judge(off int64, r *VerifyReport) error {
	want := c.expected(off)
	if got := r.verdict(); got != want {
		return fmt.Errorf("verdict %s, want %s", got, want)
	}
	if len(r.Findings) == 0 {
		return fmt.Errorf("not found")
	}
	if r.Sound() != (want != ClassCorrupt && want != ClassBridged) || r.Torn != (want == ClassTorn) {
		return fmt.Errorf("corrupt %v, torn %v", r.Corrupt, r.Torn)
	}
	return nil
}

// TestVerify_L26_EveryBitBesideATornEnd flips bits of logs whose last write was
// cut: damage below the proven end is corrupt, or bridged, and not part of what
// is torn.
func TestVerify_L26_EveryBitBesideATornEnd(t *testing.T) {
	slowRace(t)
	for name, c := range shapes() {
		t.Run(name, func(t *testing.T) {
			b := c.bytes(0)
			proven := c.at
			c.sync() // what the cut group's header would say is gone with its body
			c.durable.end = c.geo.HeaderArea()
			c.commit(700)
			torn := c.bytes(0)[len(b):]
			cut := append(b, torn[:min(len(torn), 300)]...)
			if c.groups = c.groups[:len(c.groups)-1]; len(torn) < 300 {
				t.Skip("the cut group lies in the last block, beside what is whole")
			}
			c.at = proven
			for off := c.geo.HeaderArea(); off < c.at.end; off++ {
				bit := byte(1) << (off % 8)
				cut[off] ^= bit
				want, r := c.expected(off), check(t, cut, 1)
				if got := r.verdict(); got != want {
					t.Fatalf("byte %d: verdict %s, want %s\n%s", off, got, want, r.describe())
				}
				cut[off] ^= bit
			}
		})
	}
}

// TestVerify_L51_EverySectorAndPagePair zeroes each sector and exchanges each
// pair of pages, of logs of every shape. What that must be called follows from
// what it hit; nothing that is proven durable is ever missed, or cut off.
func TestVerify_L51_EverySectorAndPagePair(t *testing.T) {
	slowRace(t)
	for name, c := range shapes() {
		t.Run(name, func(t *testing.T) {
			whole := c.bytes(64)
			for len(whole)%int(c.geo.PageSize()) != 0 {
				whole = append(whole, 0)
			}
			for off := 0; off < len(whole); off += 512 {
				b := slices.Clone(whole)
				clear(b[off : off+512])
				c.judgeMany(t, fmt.Sprintf("sector at %d zero", off), whole, b)
			}
			page, area := int(c.geo.PageSize()), int(c.geo.HeaderArea())
			for i := area; i < len(whole); i += page {
				for j := i + page; j < len(whole); j += page {
					b := slices.Clone(whole)
					copy(b[i:i+page], whole[j:])
					copy(b[j:j+page], whole[i:i+page])
					c.judgeMany(t, fmt.Sprintf("pages at %d and %d exchanged", i, j), whole, b)
				}
			}
		})
	}
}

// judgeMany holds the verdict on b against what its bytes say that differ from
// the whole log's.
func (c *crafted) judgeMany(t *testing.T, what string, whole, b []byte) {
	t.Helper()
	differs := func(from, to int64) bool {
		return !bytes.Equal(whole[from:min(to, int64(len(whole)))], b[from:min(to, int64(len(b)))])
	}
	r := check(t, b, 1)
	got, area := r.verdict(), c.geo.HeaderArea()
	if !differs(0, int64(len(whole))) {
		if got != "sound" {
			t.Fatalf("%s, which changes nothing: %s\n%s", what, got, r.describe())
		}
		return
	}
	floor := area
	for i := range c.slots {
		if !differs(frame.SlotOffsets[i], frame.SlotOffsets[i]+frame.SlotSize) {
			floor = max(floor, c.slots[i].Durable.Offset)
		}
	}
	for _, g := range c.groups {
		if !differs(g.start, g.start+frame.GroupHeaderSize) {
			floor = max(floor, g.DurableEnd)
		}
	}
	want := map[string]bool{}
	for _, g := range c.groups {
		switch hit := differs(g.from, g.end); {
		case hit && g.from >= floor:
			want[ClassTorn] = true
		case hit && !g.Derived():
			want[ClassCorrupt] = true
		case hit:
			want[ClassBridged] = true // or more, where the page header is hit, or nothing whole follows
		}
	}
	switch {
	case differs(0, area):
		if len(r.Findings) == 0 && differs(frame.IdentityOffset, frame.IdentityOffset+frame.IdentitySize) {
			t.Fatalf("%s: not found\n%s", what, r.describe())
		}
	case want[ClassCorrupt]:
		if got != ClassCorrupt {
			t.Fatalf("%s: %s, acknowledged commits are damaged\n%s", what, got, r.describe())
		}
	case want[ClassBridged]:
		if got != ClassBridged && got != ClassCorrupt {
			t.Fatalf("%s: %s, derived groups are damaged\n%s", what, got, r.describe())
		}
	case want[ClassTorn]:
		if got != ClassTorn && got != ClassCorrupt { // corrupt: a page header below the proven end
			t.Fatalf("%s: %s, want torn\n%s", what, got, r.describe())
		}
	case got == ClassCorrupt && differs(area, c.at.end):
	default:
		if got != ClassTorn {
			t.Fatalf("%s: %s, bytes behind the end are not zero\n%s", what, got, r.describe())
		}
	}
	if opened := recovered(b); !want[ClassCorrupt] && !differs(0, area) && got != ClassCorrupt && opened != got {
		t.Fatalf("%s: verdict %s, recovery says %s\n%s", what, got, opened, r.describe())
	} else if want[ClassCorrupt] && opened != ClassCorrupt {
		t.Fatalf("%s: recovery says %s", what, opened)
	}
}

// TestVerify_SameVerdictAsRecovery holds the verifier against what opening for
// writing says, which looks at all of a small log but the header area's unused
// bytes and, below the proven end, page headers.
func TestVerify_SameVerdictAsRecovery(t *testing.T) {
	slowRace(t)
	for name, c := range shapes() {
		b := c.bytes(64)
		for off := range b {
			if int64(off) < c.geo.HeaderArea() && off%13 != 0 {
				continue
			}
			b[off] ^= 1 << (off % 8)
			r := check(t, b, 1)
			got, want := r.verdict(), recovered(b)
			onlyVerify := r.Findings[0].Structure == "page header" || r.Findings[0].Structure == "header area"
			if got != want && (!onlyVerify || got != ClassCorrupt) {
				t.Fatalf("%s, byte %d: verdict %s, recovery says %s\n%s", name, off, got, want, r.describe())
			}
			b[off] ^= 1 << (off % 8)
		}
	}
}

// TestOpen_BridgesBelowANamedEnd: damage to a derived group is stepped over
// also where a slot names a later end of history, which is the usual case.
func TestOpen_BridgesBelowANamedEnd(t *testing.T) {
	c := craft(4096, 8)
	c.commit(10)
	c.sync()
	c.derived(100)
	c.commit(10)
	c.sync()
	c.name()
	b := c.bytes(0)
	b[c.groups[1].start+frame.GroupHeaderSize] ^= 1
	if got := recovered(b); got != ClassBridged {
		t.Errorf("open says %s, want bridged", got)
	}
}

// TestOpen_BridgesUpToANamedEnd: where nothing follows the damaged derived group
// but the end that a slot names, with the very history that was reached, that is
// where history goes on. Another history there is none of its own.
func TestOpen_BridgesUpToANamedEnd(t *testing.T) {
	c := craft(4096, 8)
	c.commit(10)
	c.sync()
	c.derived(100)
	c.sync()
	c.name()
	g := c.groups[1]
	for off := g.start; off < g.end; off += 8 {
		b := c.bytes(64)
		b[off] ^= 1
		if got := recovered(b); got != ClassBridged {
			t.Errorf("byte %d: open says %s, want bridged", off, got)
		}
		r := check(t, b, 1)
		if got := r.verdict(); got != ClassBridged {
			t.Errorf("byte %d: verify says %s, want bridged", off, got)
		}
	}
	for i := range c.slots {
		c.slots[i].Durable.Digest ^= 1
	}
	b := c.bytes(64)
	b[g.start] ^= 1
	if got := recovered(b); got != ClassCorrupt {
		t.Errorf("slots of another history: open says %s, want corrupt", got)
	}
}
