package pagelog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// memFile is a file in memory that can only be read.
type memFile struct {
	disk.File
	b []byte
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(f.b)) {
		return 0, io.EOF
	}
	n := copy(p, f.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Stat() (disk.Info, error) { return disk.Info{Size: int64(len(f.b)), Links: 1}, nil }

// crafted is a log made by hand, with what is known of every byte.
type crafted struct {
	id      frame.Identity
	geo     *frame.Geometry
	b       []byte
	groups  []craftedGroup
	at      point // end of the last group
	durable point // what the next group's header calls durable
	slots   [2]frame.Slot
	checks  []frame.Place // of checkpoints, newest first
}

type craftedGroup struct {
	frame.GroupHeader
	from, start, end int64 // raw end of the one before, own header, own end
}

func craft(pageSize, align uint32) *crafted {
	c := &crafted{id: frame.Identity{
		PageSize: pageSize, Align: align, LogID: [16]byte{1, 2}, Salt: 77, MaxRecord: 1 << 20,
		MaxGroup: 4 << 20, MaxRecords: 1000,
	}}
	c.geo = c.id.Geometry()
	c.b = make([]byte, c.geo.HeaderArea())
	c.at = point{end: c.geo.HeaderArea(), epoch: 1}
	c.durable = c.at
	for i := range c.slots {
		c.slots[i] = frame.Slot{Number: uint64(i + 1), Epoch: 1, Durable: c.at.place(), Floor: c.at.place(), Generation: 1}
	}
	return c
}

// group appends a group of plain records.
func (c *crafted) group(flags uint16, kind uint32, payloads ...[]byte) {
	var body []byte
	for _, p := range payloads {
		body = frame.AppendRecord(body, kind, 0, frame.Plain, p)
	}
	c.append(flags, body, len(payloads))
}

// append appends a group.
func (c *crafted) append(flags uint16, body []byte, count int) {
	h := frame.GroupHeader{
		Flags: flags, Count: uint32(count), Revision: c.at.rev, Body: int64(len(body)),
		Prev: c.at.digest, Epoch: c.at.epoch, DurableEnd: c.durable.end, Time: 5,
	}
	if !h.Derived() {
		h.Revision++
	}
	h.Digest = h.ChainDigest(body)
	b := frame.NewBuilder(c.geo)
	b.Reset(c.at.end, c.at.rev)
	end := b.Add(&h, body)
	b.Seal(c.durable.end)
	c.b = append(c.b, make([]byte, max(0, b.Offset()+int64(len(b.Bytes()))-int64(len(c.b))))...)
	copy(c.b[b.Offset():], b.Bytes())
	g := craftedGroup{h, c.at.end, c.geo.Start(c.at.end), end}
	c.groups = append(c.groups, g)
	c.at.end = end
	if h.Derived() {
		c.checks = slices.Insert(c.checks, 0, frame.Place{Offset: g.start, Revision: h.Revision, Digest: h.Digest})
	} else {
		c.at.rev, c.at.digest = h.Revision, h.Digest
	}
}

func (c *crafted) commit(sizes ...int) {
	var payloads [][]byte
	for i, n := range sizes {
		p := make([]byte, n)
		for j := range p {
			p[j] = byte(j*7 + i + len(c.groups))
		}
		payloads = append(payloads, p)
	}
	c.group(0, 0, payloads...)
}

func (c *crafted) derived(n int) {
	c.group(frame.FlagDerived, frame.KindCheckpoint, slices.Repeat([]byte{0xC5}, n))
}

// sync makes what is there durable, as far as the next header knows.
func (c *crafted) sync() { c.durable = c.at }

// name writes a slot that names what is durable, over the older one.
func (c *crafted) name() {
	old, newest := &c.slots[0], &c.slots[1]
	if old.Number > newest.Number {
		old, newest = newest, old
	}
	s := *newest
	s.Number++
	s.Epoch = c.at.epoch
	s.Durable = c.durable.place()
	if len(c.checks) > 0 {
		s.Check = c.checks[0]
	}
	if len(c.checks) > 1 {
		s.Before = c.checks[1]
	}
	*old = s
}

// proven returns the end that slots and headers prove durable, as a point
// without a digest.
func (c *crafted) proven() point {
	p := point{end: c.geo.HeaderArea()}
	for i := range c.slots {
		p.end = max(p.end, c.slots[i].Durable.Offset)
	}
	for _, g := range c.groups {
		p.end = max(p.end, g.DurableEnd)
	}
	for _, g := range c.groups {
		if g.end <= p.end && !g.Derived() {
			p.rev = g.Revision
		}
	}
	return p
}

// bytes returns the file, with a tail of zeros ahead.
func (c *crafted) bytes(tail int) []byte {
	b := append(slices.Clone(c.b), make([]byte, tail)...)
	one := c.id.Encode()
	copy(b[frame.IdentityOffset:], one)
	copy(b[frame.IdentityCopyOffset:], one)
	for i := range c.slots {
		c.geo.PutSlot(b[frame.SlotOffsets[i]:], frame.SlotOffsets[i], &c.slots[i])
	}
	return b
}

// shapes are logs of every shape that matters to checking.
func shapes() map[string]*crafted {
	durable := craft(4096, 8)
	for i := range 12 {
		durable.commit(i*61%400, 10)
		durable.sync()
		if i%3 == 0 {
			durable.name()
		}
	}
	durable.name()

	pages := craft(4096, 8)
	pages.commit(100)
	pages.commit(5000)
	pages.sync()
	pages.name()
	pages.commit(4100)
	pages.sync()
	pages.commit(20)
	pages.sync()
	pages.name()

	derived := craft(4096, 512)
	derived.commit(300)
	derived.sync()
	derived.derived(700)
	derived.commit(0)
	derived.sync()
	derived.derived(3000)
	derived.sync()
	derived.name()
	derived.at.epoch = 3
	derived.commit(1000, 1000)
	derived.sync()
	derived.name()

	unsynced := craft(8192, 8)
	unsynced.commit(500)
	unsynced.sync()
	unsynced.name()
	for range 5 {
		unsynced.commit(900)
	}
	unsynced.derived(100)
	unsynced.commit(5000)

	unnamed := craft(4096, 8)
	for range 7 {
		unnamed.commit(30)
		unnamed.sync()
	}

	beyond := edges(4096, 8)
	beyond.commit(100) // its page header lies at the proven end
	beyond.commit(5000)

	return map[string]*crafted{
		"beyond": beyond, "unnamed": unnamed, "durable": durable, "pages": pages, "derived": derived, "unsynced": unsynced, "empty": craft(4096, 8),
		"edges": edges(4096, 8), "sectors": edges(4096, 512), "blocks": edges(8192, 4096), "large pages": edges(16384, 512),
	}
}

// edges is a log whose groups end at the edges of sectors and of a page, the
// last one with the page and the file.
func edges(pageSize, align uint32) *crafted {
	c := craft(pageSize, align)
	for i, edge := range []int64{512, 512, 4096, 512, int64(pageSize)} {
		if i == 3 {
			c.derived(40)
		}
		c.commitTo(edge)
		c.sync()
		if i%2 == 0 {
			c.name()
		}
	}
	return c
}

// commitTo appends a commit that ends at a multiple of edge.
func (c *crafted) commitTo(edge int64) {
	for n := 8; ; n += 8 {
		body := frame.AppendRecord(nil, 0, 0, frame.Plain, make([]byte, n))
		if c.geo.End(c.geo.Start(c.at.end), int64(len(body)))%edge == 0 {
			c.commit(n)
			return
		}
	}
}

// check verifies bytes.
func check(t testing.TB, b []byte, workers int) VerifyReport {
	t.Helper()
	r, err := verifyFile(context.Background(), &memFile{b: b}, VerifyOptions{}, plan{workers: workers, stretch: 4096})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// verdict says in one word what a report says, and recovery's word for it.
func (r *VerifyReport) verdict() string {
	word := "sound"
	for _, f := range r.Findings {
		switch {
		case f.Class == ClassCorrupt, word == ClassCorrupt:
			word = ClassCorrupt
		case f.Class == ClassBridged, word == ClassBridged:
			word = ClassBridged
		case f.Class == ClassTorn:
			word = ClassTorn
		}
	}
	return word
}

// recovered returns what opening for writing says of the same bytes.
func recovered(b []byte) string {
	f := &memFile{b: b}
	h, err := readHeader(f)
	if err != nil {
		return err.Error()
	}
	r, err := recoverLog(f, h, nil)
	switch {
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrDiverged):
		return ClassCorrupt
	case err != nil:
		return err.Error()
	case len(r.report.Bridged) > 0:
		return ClassBridged
	case r.report.Torn > 0:
		return ClassTorn
	}
	return "sound"
}

func (r *VerifyReport) describe() string {
	var text strings.Builder
	text.WriteString(fmt.Sprintf("head %d end %d durable %d groups %d", r.Head, r.End, r.Durable, r.Groups))
	for _, f := range r.Findings {
		text.WriteString(fmt.Sprintf("\n  %+v", f))
	}
	for _, i := range r.Intact {
		text.WriteString(fmt.Sprintf("\n  intact %+v", i))
	}
	return text.String()
}
