package pagelog

import (
	"fmt"
	"runtime/debug"
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

// TestVerify_SameVerdictAsRecovery holds the verifier against what opening for
// writing says, which looks at all of a small log but the header area's unused
// bytes and, below the proven end, page headers.
func TestVerify_SameVerdictAsRecovery(t *testing.T) {
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
