package pagelog

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
)

func picture(t testing.TB, b []byte, o InspectOptions) Picture {
	t.Helper()
	p, err := inspectFile(context.Background(), &memFile{b: b}, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// provenEnd returns the durable floor of a crafted log.
func provenEnd(c *crafted) int64 {
	end := max(c.slots[0].Durable.Offset, c.slots[1].Durable.Offset)
	for _, g := range c.groups {
		end = max(end, g.DurableEnd)
	}
	return end
}

// sum returns the bytes of a cell in all.
func (c *Cell) sum() int64 {
	return c.Header + c.Dropped + c.Commits + c.Derived + c.Index + c.Unsynced + c.Torn + c.Damaged + c.Ahead
}

// checkMap fails unless the map accounts for every byte of the file once.
func checkMap(t testing.TB, p *Picture) {
	t.Helper()
	pages, total := int64(0), int64(0)
	for i := range p.Map {
		c := &p.Map[i]
		if c.Page != pages || c.sum() > c.Pages*int64(p.Info.PageSize) {
			t.Fatalf("cell %d begins at page %d, not %d, or holds too much: %+v", i, c.Page, pages, c)
		}
		pages += c.Pages
		total += c.sum()
	}
	if total != p.FileSize {
		t.Fatalf("the map accounts for %d bytes of %d: %+v", total, p.FileSize, p.Map)
	}
}

// TestInspect_L53_Shapes: what the picture says of a sound log is what was put
// into it, group for group and record for record.
func TestInspect_L53_Shapes(t *testing.T) {
	all := shapes()
	all["record behind a page header"] = craft(4096, 8)
	all["record behind a page header"].commit(4096-frame.PageHeaderSize-frame.GroupHeaderSize-frame.RecordHeaderSize, 5)
	for name, c := range all {
		b := c.bytes(5000)
		p := picture(t, b, InspectOptions{Groups: 1000, Records: 1000})
		checkMap(t, &p)
		if len(p.Groups) != len(c.groups) || p.LeftOut != 0 || p.Proven != provenEnd(c) || p.End != c.at.end || p.DirtEnd > c.at.end+7 {
			t.Fatalf("%s: %+v", name, p)
		}
		for i, g := range p.Groups {
			want := c.groups[i]
			state := stateDurable
			if want.end > p.Proven {
				state = stateComplete
			}
			if g.From != want.from || g.Offset != want.start || g.End != want.end || g.Revision != want.Revision ||
				g.Count != int(want.Count) || (g.Kind == kindCommit) == want.Derived() || g.State != state || len(g.Records) != g.Count {
				t.Errorf("%s: group %d is %+v, want %+v", name, i, g, want)
			}
			for j, r := range g.Records {
				if got := recordLength(b, r.Offset); got != uint32(r.Stored) {
					t.Errorf("%s: group %d: at record %d, offset %d, the file has length %d, want %d", name, i, j, r.Offset, got, r.Stored)
				}
			}
		}
	}
}

// recordLength reads the length of the record whose header is at off; a header
// may straddle pages, its first field never does.
func recordLength(b []byte, off int64) uint32 { return binary.LittleEndian.Uint32(b[off:]) }

// TestInspect_L53_Bounded: of a large log the first and last groups are kept,
// in order, and everything is counted.
func TestInspect_L53_Bounded(t *testing.T) {
	c := craft(4096, 8)
	for i := range 500 {
		c.commit(i%300, 7, 7)
		c.sync()
	}
	c.name()
	for _, n := range []int{-1, 1, 2, 7, 8, 499, 500, 501} {
		p := picture(t, c.bytes(0), InspectOptions{Groups: n, Records: 2, Cells: 10})
		checkMap(t, &p)
		want := min(max(n, 0), 500)
		if len(p.Groups) != want || p.LeftOut != uint64(500-want) || len(p.Map) > 10 || p.Check.Groups != 500 {
			t.Fatalf("%d groups asked for: %d kept, %d left out, %d cells", n, len(p.Groups), p.LeftOut, len(p.Map))
		}
		for i, g := range p.Groups {
			rev := uint64(i + 1)
			if i >= p.First {
				rev = uint64(500 - want + i + 1)
			}
			if g.Revision != rev || len(g.Records) != 2 || g.Count != 3 {
				t.Errorf("%d groups asked for: group %d is revision %d, want %d: %+v", n, i, g.Revision, rev, g)
			}
		}
	}
}

// TestInspect_L53_Damage: any damage gives a picture that accounts for every
// byte, agrees with verify, and marks the page that verify names.
func TestInspect_L53_Damage(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 53))
	for name, c := range shapes() {
		sound := c.bytes(3000)
		for range 300 {
			b := append([]byte(nil), sound...)
			switch rng.IntN(3) {
			case 0:
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			case 1:
				at := rng.IntN(len(b))
				clear(b[at:min(at+rng.IntN(6000), len(b))])
			default:
				b = b[:rng.IntN(len(b))]
			}
			p, err := inspectFile(context.Background(), &memFile{b: b}, InspectOptions{})
			report, verr := verifyFile(context.Background(), &memFile{b: b}, VerifyOptions{}, plan{workers: 1, stretch: 4096})
			if err != nil || verr != nil {
				if err == nil || verr == nil || err.Error() != verr.Error() {
					t.Fatalf("%s: inspect says %v, verify %v", name, err, verr)
				}
				continue
			}
			checkMap(t, &p)
			if p.Check.describe() != report.describe() {
				t.Fatalf("%s: inspect says\n%s\nverify says\n%s", name, p.Check.describe(), report.describe())
			}
			for _, f := range report.Findings {
				if f.Class != ClassCorrupt || f.Page/p.CellPages >= int64(len(p.Map)) {
					continue
				}
				if got := p.Map[f.Page/p.CellPages].State(); got != "damaged" {
					t.Fatalf("%s: page %d is %s on the map, verify says %+v", name, f.Page, got, f)
				}
			}
		}
	}
}

// TestInspect_L53_Torn: a group whose own page header is bad and that was never
// acknowledged is torn, also when all else of it holds.
func TestInspect_L53_Torn(t *testing.T) {
	c := craft(4096, 8)
	c.commit(100)
	c.sync()
	c.name()
	c.commit(9000)
	c.commit(10)
	b := c.bytes(0)
	page := c.geo.PageStart(c.groups[1].start) + 4096
	b[page+16] ^= 1
	p := picture(t, b, InspectOptions{})
	checkMap(t, &p)
	if p.End != c.groups[0].end || p.Groups[1].State != stateTorn || p.Groups[2].State != stateTorn || p.Map[len(p.Map)-1].State() != "torn" {
		t.Errorf("%+v", p)
	}
}

// TestInspect_Unsupported: what a later version wrote ends the picture, which
// still has what is before it.
func TestInspect_Unsupported(t *testing.T) {
	c := craft(4096, 8)
	c.commit(100)
	c.sync()
	c.commit(10)
	b := c.bytes(0)
	g := c.groups[1]
	h := g.GroupHeader
	h.Flags = 2
	c.geo.PutGroup(b[g.start:], g.start, &h)
	p, err := inspectFile(context.Background(), &memFile{b: b}, InspectOptions{})
	if !errors.Is(err, ErrUnsupported) || len(p.Groups) != 1 || p.FileSize != int64(len(b)) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestInspect_Kinds names what derived groups are for.
func TestInspect_Kinds(t *testing.T) {
	c := craft(4096, 8)
	for kind, want := range map[uint32]string{
		frame.KindCheckpoint: kindCheckpoint, frame.KindIndexRun: kindIndexRun, frame.KindFloor: kindFloor, frame.KindSalvaged: kindDerived,
	} {
		c.group(frame.FlagDerived, kind, []byte("x"))
		p := picture(t, c.bytes(0), InspectOptions{})
		if got := p.Groups[len(p.Groups)-1].Kind; got != want {
			t.Errorf("kind %#x is %q, want %q", kind, got, want)
		}
	}
}
