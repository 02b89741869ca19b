package pagelog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
)

// long is a log of many small and some large groups, all durable.
func long(groups int) *crafted {
	c := craft(4096, 8)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range groups {
		switch {
		case i%17 == 16:
			c.derived(rng.IntN(3000))
		case i%23 == 22:
			c.commit(rng.IntN(9000), 5)
		default:
			c.commit(rng.IntN(200))
		}
		c.sync()
	}
	c.name()
	c.name()
	return c
}

// intact lists the revisions of the intact ranges.
func (r *VerifyReport) intact() string {
	var text strings.Builder
	for _, i := range r.Intact {
		text.WriteString(fmt.Sprintf("%d-%d ", i.First, i.Last))
	}
	return text.String()
}

func (r *VerifyReport) classes() string {
	var text strings.Builder
	for _, f := range r.Findings {
		text.WriteString(f.Class + ":" + f.Structure + " ")
	}
	return text.String()
}

func TestVerify_C11_NamesEveryLaterDamage(t *testing.T) {
	c := craft(4096, 8)
	for range 200 {
		c.commit(100)
		c.sync()
	}
	c.name()
	tests := []struct {
		name   string
		flips  []int64 // offsets
		intact string
		found  int
	}{
		{"payload", []int64{c.groups[10].start + 110}, "1-10 12-200 ", 1},
		{"record header", []int64{c.groups[10].start + 81}, "1-10 12-200 ", 1},
		{"group header", []int64{c.groups[10].start + 20}, "1-10 12-200 ", 1},
		{"headers of two groups in one page", []int64{c.groups[5].start + 20, c.groups[9].start + 20}, "1-5 11-200 ", 1},
		{"payloads of neighbours", []int64{c.groups[5].start + 110, c.groups[6].start + 110}, "1-5 8-200 ", 2},
		{"three pages", []int64{c.groups[5].start + 20, c.groups[80].start + 20, c.groups[150].start + 110}, "1-5 7-80 82-150 152-200 ", 3},
		{"last group", []int64{c.groups[199].start + 20}, "1-199 ", 1},
		{"last but one", []int64{c.groups[198].start + 20}, "1-198 200-200 ", 1},
		{"page header", []int64{4096*6 + 9}, "1-200 ", 1},
		{"first group", []int64{c.groups[0].start + 20}, "2-200 ", 1},
	}
	for _, test := range tests {
		b := c.bytes(0)
		for _, off := range test.flips {
			b[off] ^= 4
		}
		r := check(t, b, 1)
		if r.Sound() || len(r.Findings) != test.found || r.intact() != test.intact {
			t.Errorf("%s: intact %q, want %q, %d findings\n%s", test.name, r.intact(), test.intact, test.found, r.describe())
		}
		if r.Findings[0].Offset > test.flips[0] || r.Findings[0].Page != test.flips[0]/4096 {
			t.Errorf("%s: located at %+v", test.name, r.Findings[0])
		}
	}
}

func TestVerify_C14_MiddlePageZeroedOrGarbled(t *testing.T) {
	c := craft(4096, 8)
	c.commit(50)
	c.commit(5000, 5000, 5000)
	c.commit(50)
	c.sync()
	c.name()
	for _, fill := range []byte{0, 0xA5} {
		b := c.bytes(0)
		middle := c.geo.PageStart(c.groups[1].start) + 4096
		copy(b[middle:middle+4096], bytes.Repeat([]byte{fill}, 4096))
		r := check(t, b, 1)
		if r.verdict() != ClassCorrupt || r.Head != 1 || r.intact() != "1-1 3-3 " {
			t.Errorf("fill %#x: %s", fill, r.describe())
		}
	}
	d := craft(4096, 8)
	d.commit(50)
	d.commit(5000, 5000, 5000)
	b := d.bytes(0)
	middle := d.geo.PageStart(d.groups[1].start) + 4096
	clear(b[middle : middle+4096])
	if r := check(t, b, 1); r.verdict() != ClassTorn || r.Head != 1 {
		t.Errorf("unacknowledged: %s", r.describe())
	}
}

func TestVerify_C15_MissingSwappedAndZeroedPages(t *testing.T) {
	c := long(300)
	first, pages := c.geo.HeaderArea(), (c.at.end-c.geo.HeaderArea())/4096
	for i := range pages {
		at := first + i*4096
		missing := slices.Delete(c.bytes(0), int(at), int(at+4096))
		zeroed := c.bytes(0)
		clear(zeroed[at : at+4096])
		swapped := c.bytes(0)
		if i > 0 {
			copy(swapped[at:], c.b[first:first+4096])
			copy(swapped[first:], c.b[at:at+4096])
		} else {
			swapped = zeroed
		}
		for name, b := range map[string][]byte{"missing": missing, "zeroed": zeroed, "swapped": swapped} {
			r := check(t, b, 1)
			if r.verdict() != ClassCorrupt {
				t.Fatalf("page %d %s: %s", i, name, r.describe())
			}
			last := uint64(0)
			for _, in := range r.Intact {
				if in.First <= last || in.Last < in.First {
					t.Fatalf("page %d %s: ranges %s", i, name, r.intact())
				}
				last = in.Last
			}
			if name == "zeroed" && i < pages-2 && last != c.at.rev {
				t.Fatalf("page %d %s: the end was not reached: %s", i, name, r.describe())
			}
		}
	}
}

func TestVerify_C18_TruncatedAnywhere(t *testing.T) {
	for name, c := range shapes() {
		whole := c.bytes(0)
		for size := len(whole) - 1; size >= int(c.geo.HeaderArea()); size -= 8 {
			b := whole[:size:size]
			r := check(t, b, 1)
			if got, want := r.verdict(), recovered(b); got != want {
				t.Fatalf("%s cut to %d: %s, recovery says %s\n%s", name, size, got, want, r.describe())
			}
			if int64(size) < max(c.slots[0].Durable.Offset, c.slots[1].Durable.Offset) && r.Sound() {
				t.Fatalf("%s cut to %d: sound\n%s", name, size, r.describe())
			}
		}
	}
}

func TestVerify_Slots(t *testing.T) {
	c := long(20)
	a, b := frame.SlotOffsetA, frame.SlotOffsetB
	swap := func(f []byte) {
		one := slices.Clone(f[a : a+512])
		copy(f[a:], f[b:b+512])
		copy(f[b:], one)
	}
	tests := []struct {
		name    string
		change  func([]byte)
		verdict string
		classes string
	}{
		{"one bad", func(f []byte) { f[a+100] ^= 1 }, "sound", "note:slot "},
		{"one never written", func(f []byte) { clear(f[b : b+512]) }, "sound", "note:slot "},
		{"both bad", func(f []byte) { f[a+100] ^= 1; f[b+9] ^= 1 }, ClassCorrupt, "corrupt:slot corrupt:slot "},
		{"swapped", swap, ClassCorrupt, "corrupt:slot corrupt:slot "},
		{"one identity", func(f []byte) { f[50] ^= 1 }, "sound", "note:identity "},
		{"identities differ", func(f []byte) {
			id := c.id
			id.App = 9
			copy(f[frame.IdentityCopyOffset:], id.Encode())
		}, ClassCorrupt, "corrupt:identity "},
		{"both bad, and no group", func(f []byte) { f[a] ^= 1; f[b] ^= 1; clear(f[16384:]) }, ClassCorrupt, "corrupt:slot corrupt:slot "},
	}
	for _, test := range tests {
		f := c.bytes(100)
		test.change(f)
		r := check(t, f, 1)
		if r.verdict() != test.verdict || r.classes() != test.classes {
			t.Errorf("%s: %s", test.name, r.describe())
		}
	}
}

func TestVerify_SlotsThatLie(t *testing.T) {
	good := long(40)
	tests := map[string]func(s *frame.Slot){
		"durable digest":     func(s *frame.Slot) { s.Durable.Digest++ },
		"durable revision":   func(s *frame.Slot) { s.Durable.Revision-- },
		"durable in a group": func(s *frame.Slot) { s.Durable.Offset -= 8 },
		"durable beyond":     func(s *frame.Slot) { s.Durable.Offset += 4096 },
		"checkpoint digest":  func(s *frame.Slot) { s.Check.Digest++ },
		"checkpoint is data": func(s *frame.Slot) {
			g := good.groups[3]
			s.Check = frame.Place{Offset: g.start, Revision: g.Revision, Digest: g.Digest}
		},
		"checkpoint nowhere": func(s *frame.Slot) { s.Before = frame.Place{Offset: good.groups[3].start + 8, Revision: 3} },
	}
	for name, lie := range tests {
		c := long(40)
		lie(&c.slots[0])
		r := check(t, c.bytes(0), 1)
		if r.Sound() { // a durable end beyond the file may be a derived group that is gone
			t.Errorf("%s: %s", name, r.describe())
		}
		if p := check(t, c.bytes(0), 3); !reflect.DeepEqual(p, r) {
			t.Errorf("%s: in parallel %s\none worker %s", name, p.describe(), r.describe())
		}
	}
}

func TestVerify_EpochGoesBack(t *testing.T) {
	c := craft(4096, 8)
	c.at.epoch = 5
	c.commit(10)
	c.sync()
	c.at.epoch = 4
	c.commit(10)
	c.sync()
	c.commit(10)
	c.sync()
	c.name()
	r := check(t, c.bytes(0), 1)
	if r.verdict() != ClassCorrupt || r.intact() != "1-1 2-3 " || len(r.Findings) != 1 {
		t.Error(r.describe())
	}
}

// TestVerify_C34_PayloadIsNoStructure: a payload may hold whole pages, groups
// and slots of this very log. Where it is sound they mean nothing, and where
// the group around them is damaged they are not taken for what was lost.
func TestVerify_C34_PayloadIsNoStructure(t *testing.T) {
	c := craft(4096, 8)
	for range 30 {
		c.commit(60)
		c.sync()
	}
	copied := slices.Clone(c.b[16384:])
	c.group(0, 0, copied)
	c.sync()
	// A group that is whole where it lies, in the payload of another.
	inner := craft(4096, 8)
	*inner = *c
	inner.b, inner.groups = slices.Clone(c.b), nil
	at := c.geo.Start(c.at.end) + frame.GroupHeaderSize + frame.RecordHeaderSize
	inner.at = point{end: at, rev: 50, digest: 1, epoch: 1}
	inner.commit(40)
	c.group(0, 0, slices.Clone(inner.b[at:inner.at.end]))
	outer := c.groups[len(c.groups)-1]
	c.sync()
	c.commit(10)
	c.sync()
	c.name()
	if r := check(t, c.bytes(0), 1); !r.Sound() || r.Head != 33 {
		t.Error(r.describe())
	}
	b := c.bytes(0)
	b[outer.start+20] ^= 1
	if r := check(t, b, 1); r.intact() != "1-31 33-33 " {
		t.Error(r.describe())
	}
}

// TestVerify_C34_FakeThatEndsWhereHistoryGoesOn: a payload holds a group that is
// whole where it lies and ends exactly where the next page's first group
// begins. Only a digest that leads on would make it history.
func TestVerify_C34_FakeThatEndsWhereHistoryGoesOn(t *testing.T) {
	c := craft(4096, 8)
	c.commit(60)
	c.sync()
	start := c.geo.Start(c.at.end)
	payload := c.geo.PageStart(start) + 4096 - 40 - start - frame.GroupHeaderSize - frame.RecordHeaderSize
	fake := craft(4096, 8)
	fake.b = slices.Clone(c.b)
	fake.at = point{end: start + frame.GroupHeaderSize + frame.RecordHeaderSize, rev: 1, digest: 1, epoch: 1}
	fake.durable = fake.at
	at := fake.at.end
	fake.commit(int(payload) - frame.GroupHeaderSize - frame.RecordHeaderSize)
	c.group(0, 0, slices.Clone(fake.b[at:fake.at.end]))
	if fake.at.end != c.at.end {
		t.Fatalf("the fake ends at %d, not %d", fake.at.end, c.at.end)
	}
	c.sync()
	c.commit(10)
	c.sync()
	c.name()
	b := c.bytes(0)
	b[start+20] ^= 1
	if r := check(t, b, 1); r.intact() != "1-1 3-3 " || len(r.Findings) != 1 {
		t.Error(r.describe())
	}
}

// TestVerify_C12_LaterHeaderIsEvidence: no slot names the end, the header of a
// later commit does.
func TestVerify_C12_LaterHeaderIsEvidence(t *testing.T) {
	c := shapes()["unnamed"]
	for i := range c.groups {
		b := c.bytes(0)
		b[c.groups[i].start+20] ^= 1
		want := ClassCorrupt
		if i == len(c.groups)-1 {
			want = ClassTorn // nothing says that the last one was acknowledged
		}
		if r := check(t, b, 1); r.verdict() != want {
			t.Errorf("group %d: %s", i, r.describe())
		}
	}
}

func TestVerify_ProvenEndInsideAGroup(t *testing.T) {
	c := craft(4096, 8)
	for range 5 {
		c.commit(100)
	}
	c.durable.end = c.groups[2].end - 16
	c.commit(1)
	b := c.bytes(0)
	if r := check(t, b, 1); r.verdict() != ClassCorrupt || recovered(b) != ClassCorrupt || r.Findings[0].Offset != c.durable.end {
		t.Errorf("recovery says %s: %s", recovered(b), r.describe())
	}
}

// TestVerify_WholeGroupOfAnotherHistory: at the end of the log lies a whole group
// that does not carry on. If the newest writer wrote it, something is lost
// before it; if a later writer came after it, it is what that one cut off.
func TestVerify_WholeGroupOfAnotherHistory(t *testing.T) {
	c := craft(4096, 8)
	c.commit(10)
	c.sync()
	c.name()
	c.at.digest++
	c.commit(10)
	b := c.bytes(0)
	if r := check(t, b, 1); r.verdict() != ClassCorrupt || recovered(b) != ClassCorrupt {
		t.Errorf("recovery says %s: %s", recovered(b), r.describe())
	}
	c.at.epoch = 2
	c.commit(10)
	b = c.bytes(0)
	if r := check(t, b, 1); r.verdict() != ClassTorn || recovered(b) != ClassTorn {
		t.Errorf("cut off: recovery says %s: %s", recovered(b), r.describe())
	}
}

// TestVerify_StretchesAreStitched breaks history in every way at every group:
// also where one worker's stretch meets the next one's.
func TestVerify_StretchesAreStitched(t *testing.T) {
	const groups = 60
	breaks := map[string]func(c *crafted){
		"digest":   func(c *crafted) { c.at.digest++ },
		"revision": func(c *crafted) { c.at.rev++ },
		"epoch":    func(c *crafted) { c.at.epoch-- },
		"padding":  func(c *crafted) { c.b[len(c.b)-1] ^= 1 },
		"slot":     func(c *crafted) { c.slots[0].Durable.Offset = c.at.end + 8 },
		"in step":  func(c *crafted) {},
	}
	for name, hurt := range breaks {
		for i := 1; i < groups; i++ {
			c := craft(4096, 512)
			c.at.epoch = 9
			for j := range groups {
				if j == i {
					hurt(c)
				}
				c.commit(650)
				c.sync()
			}
			c.slots[1].Durable = c.at.place()
			c.slots[1].Epoch = 9
			b := c.bytes(0)
			one := check(t, b, 1)
			if one.Sound() != (name == "in step") {
				t.Fatalf("%s before group %d: %s", name, i, one.describe())
			}
			if many := check(t, b, 3); !reflect.DeepEqual(one, many) {
				t.Fatalf("%s before group %d: 3 workers: %s\none: %s", name, i, many.describe(), one.describe())
			}
		}
	}
}

// TestVerify_SerialIsParallel damages a log at random and holds the reports of
// several numbers of workers against each other.
func TestVerify_SerialIsParallel(t *testing.T) {
	c := long(700)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 150 {
		b := c.bytes(300)
		for range rng.IntN(5) {
			switch off := 16384 + rng.Int64N(int64(len(b)-16384)); rng.IntN(4) {
			case 0:
				clear(b[off:min(off+rng.Int64N(9000), int64(len(b)))])
			case 1:
				b[off&^4095+rng.Int64N(32)] ^= 1
			case 2:
				b[c.groups[rng.IntN(len(c.groups))].start+rng.Int64N(80)] ^= 1
			default:
				b[off] ^= 1 << rng.IntN(8)
			}
		}
		if rng.IntN(8) == 0 {
			b = b[:16384+rng.IntN(len(b)-16384)]
		}
		one := check(t, b, 1)
		for _, workers := range []int{2, 5} {
			if many := check(t, b, workers); !reflect.DeepEqual(one, many) {
				t.Fatalf("run %d: %d workers: %s\none: %s", i, workers, many.describe(), one.describe())
			}
		}
		if got, want := one.verdict(), recovered(b); got != want && (got != ClassCorrupt || one.Head != c.at.rev) {
			t.Fatalf("run %d: %s, recovery says %s\n%s", i, got, want, one.describe())
		}
	}
}
