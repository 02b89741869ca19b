package frame

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// model lays groups out the slow way, one byte at a time, from the words of
// the specification alone.
type model struct {
	page, align int64
	pos         int64
	base        int64                 // offset of file[0]
	file        []byte                // what is written, page headers left zero
	pages       map[int64]*PageHeader // by offset
	starts      []int64
	ends        []int64
}

func (m *model) fill(b []byte, rev uint64) {
	for _, c := range b {
		if m.pos%m.page == 0 {
			m.header(rev)
		}
		m.put(c)
	}
}

func (m *model) put(c byte) {
	for int64(len(m.file)) < m.pos-m.base {
		m.file = append(m.file, 0)
	}
	m.file = append(m.file, c)
	m.pos++
}

func (m *model) header(last uint64) {
	m.pages[m.pos] = &PageHeader{Number: m.pos / m.page, Last: last}
	m.pos += 32
}

// seek goes to where the next group starts, header is its size.
func (m *model) seek(last uint64) {
	for m.pos%m.align != 0 {
		m.pos++
	}
	if left := m.page - m.pos%m.page; left < 80 {
		m.pos += left
	}
	if m.pos%m.page == 0 {
		m.header(last)
	}
}

// started notes a group's start in the page it lies in.
func (m *model) started() {
	if p := m.pages[m.pos/m.page*m.page]; p != nil && p.First == 0 {
		p.First = uint32(m.pos % m.page)
	}
	m.starts = append(m.starts, m.pos)
}

// modelOf lays out groups behind end, and the place of the one after them.
func modelOf(g *Geometry, end int64, last uint64, groups []testGroup) *model {
	m := &model{
		page: g.pageSize, align: g.align, pos: end, base: end,
		pages: map[int64]*PageHeader{},
	}
	for _, gr := range groups {
		m.seek(last)
		m.started()
		m.fill(make([]byte, 80), gr.Revision)
		m.fill(gr.body, gr.Revision)
		m.ends = append(m.ends, m.pos)
		if !gr.Derived() {
			last = gr.Revision
		}
	}
	written := m.pos
	m.seek(last)
	m.started()
	for p := range m.pages {
		if p >= written {
			delete(m.pages, p)
		}
	}
	return m
}

// compareModel holds Builder, Start, End, Gather and CheckGap against the model.
func compareModel(g *Geometry, end int64, last uint64, groups []testGroup) error {
	m := modelOf(g, end, last, groups)
	b := NewBuilder(g)
	b.Reset(end, last)
	at := end
	for i := range groups {
		if got := g.Start(at); got != m.starts[i] || !g.MayStart(got) {
			return fmt.Errorf("group %d: Start(%d) = %d, want %d; MayStart %v", i, at, got, m.starts[i], g.MayStart(got))
		}
		if got := g.End(m.starts[i], int64(len(groups[i].body))); got != m.ends[i] || !g.MayEnd(got) {
			return fmt.Errorf("group %d: End(%d, %d) = %d, want %d; MayEnd %v", i, m.starts[i], len(groups[i].body), got, m.ends[i], g.MayEnd(got))
		}
		if at = b.Add(&groups[i].GroupHeader, groups[i].body); at != m.ends[i] {
			return fmt.Errorf("group %d: Add = %d, want %d", i, at, m.ends[i])
		}
	}
	if got := g.Start(at); got != m.starts[len(groups)] {
		return fmt.Errorf("next group: Start(%d) = %d, want %d", at, got, m.starts[len(groups)])
	}
	b.Seal(end)
	if b.Offset()%g.align != 0 || (b.Offset()+int64(len(b.Bytes())))%g.align != 0 || b.End() != at {
		return fmt.Errorf("write of %d bytes at %d, raw end %d", len(b.Bytes()), b.Offset(), b.End())
	}
	if err := compareBytes(g, m, b, len(groups)); err != nil {
		return err
	}
	got, err := walk(g, b.Bytes(), b.Offset(), end, groups[0], len(groups))
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	for i := range got {
		if !bytes.Equal(got[i].body, groups[i].body) {
			return fmt.Errorf("group %d: body changed", i)
		}
	}
	return nil
}

// compareBytes holds every byte of a write against the model, group headers
// (decoded elsewhere) aside.
func compareBytes(g *Geometry, m *model, b *Builder, n int) error {
	raw, pages, heads := b.Bytes(), 0, 0
	for i := int64(0); i < int64(len(raw)); i++ {
		off := b.Offset() + i
		if want := m.pages[off]; off%g.pageSize == 0 && want != nil {
			got, err := g.DecodePage(raw[i:], off)
			if err != nil || got != *want {
				return fmt.Errorf("page at %d: %+v %w, want %+v", off, got, err, *want)
			}
			pages++
			i += 31
			continue
		}
		if heads < n && off == m.starts[heads] {
			heads++
			i += 79
			continue
		}
		want := byte(0)
		if off-m.base < int64(len(m.file)) {
			want = m.file[off-m.base]
		}
		if raw[i] != want {
			return fmt.Errorf("byte at %d: %#x, want %#x", off, raw[i], want)
		}
	}
	if pages != len(m.pages) || heads != n {
		return fmt.Errorf("%d pages and %d groups, want %d and %d", pages, heads, len(m.pages), n)
	}
	return nil
}

// oneRecord returns a group whose extent without page headers is 80 + 24 + n,
// n rounded up to 8.
func oneRecord(n int) testGroup { return commitOf(pattern(n, uint64(n))) }

// lefts are the numbers of bytes left in a page that a geometry can treat
// differently; a few of them for large pages.
func lefts(page, align uint32) (left []int64) {
	limit := min(88+int64(align), int64(page)-PageHeaderSize-GroupHeaderSize-RecordHeaderSize)
	for n := int64(0); n <= limit; n += 8 {
		if edge := n <= 8 || n >= 72 && n <= 88 || n >= limit-8; page == 4096 || edge && page <= 16<<10 || n == 0 || n == 72 || n == 80 {
			left = append(left, n)
		}
	}
	return left
}

// TestGeometry_PageEnds puts the raw end of a group at every place that
// matters around the end of a page, for every geometry there is.
func TestGeometry_PageEnds(t *testing.T) {
	for _, page := range pageSizes {
		for _, align := range aligns {
			g := testGeometry(page, align)
			first := g.HeaderArea() + PageHeaderSize
			for _, left := range lefts(page, align) {
				n := int(int64(page) - PageHeaderSize - GroupHeaderSize - RecordHeaderSize - left)
				groups := history(0, 0, oneRecord(n), oneRecord(5), oneRecord(0))
				if end := g.End(first, groups[0].Body); end != g.HeaderArea()+int64(page)-left {
					t.Fatalf("page %d: raw end %d leaves not %d", page, end, left)
				}
				if err := compareModel(g, g.HeaderArea(), 0, groups); err != nil {
					t.Fatalf("page %d align %d left %d: %v", page, align, left, err)
				}
			}
		}
	}
}

// TestGeometry_ManyPages lays out groups that run over many pages, with record
// headers across page boundaries.
func TestGeometry_ManyPages(t *testing.T) {
	for _, align := range aligns {
		g := testGeometry(4096, align)
		for extra := int64(0); extra < 48; extra += 8 {
			a := testGroup{body: nil}
			for i := range 300 {
				a.body = AppendRecord(a.body, 7, 0, Plain, pattern(40+i%16, uint64(i)))
			}
			// The second group ends exactly at the end of a page, or extra past it.
			room := 5*(int64(4096)-PageHeaderSize) - GroupHeaderSize - RecordHeaderSize
			b := oneRecord(int(room - 4096 + extra))
			if err := compareModel(g, g.HeaderArea(), 3, history(3, 9, a, b, oneRecord(1), oneRecord(9000))); err != nil {
				t.Fatalf("align %d extra %d: %v", align, extra, err)
			}
		}
	}
}

// TestGeometry_Model compares random sequences of groups with the model.
func TestGeometry_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := rapid.SampledFrom(pageSizes[:4]).Draw(t, "page")
		align := rapid.SampledFrom(aligns).Draw(t, "align")
		g := testGeometry(page, align)
		end := g.HeaderArea() + 8*rapid.Int64Range(0, int64(page)/4).Draw(t, "end")
		if !g.MayEnd(end) {
			end = g.HeaderArea()
		}
		var groups []testGroup
		for range rapid.IntRange(1, 6).Draw(t, "groups") {
			gr := testGroup{}
			if rapid.IntRange(0, 4).Draw(t, "derived") == 0 {
				gr.Flags = FlagDerived
			}
			for range rapid.IntRange(1, 4).Draw(t, "records") {
				n := rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(0, 3*int(page))).Draw(t, "n")
				gr.body = AppendRecord(gr.body, 1, 0, Plain, pattern(n, uint64(n)))
			}
			groups = append(groups, gr)
		}
		last := rapid.Uint64Range(0, 1<<40).Draw(t, "last")
		if err := compareModel(g, end, last, history(last, 42, groups...)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestGeometry_SplitWrites proves that the page headers of one write promise
// what the next write does: however a sequence is cut into writes, the file is
// the same.
func TestGeometry_SplitWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := testGeometry(rapid.SampledFrom(pageSizes[:2]).Draw(t, "page"), rapid.SampledFrom(aligns).Draw(t, "align"))
		var groups []testGroup
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 6000), 2, 8).Draw(t, "sizes") {
			groups = append(groups, oneRecord(n))
		}
		history(0, 0, groups...)
		end := g.HeaderArea()
		b := NewBuilder(g)
		whole := bytes.Clone(layOut(b, end, 0, groups))
		file := make([]byte, len(whole))
		at, last := end, uint64(0)
		for len(groups) > 0 {
			n := rapid.IntRange(1, len(groups)).Draw(t, "cut")
			b.Reset(at, last)
			for i := range groups[:n] {
				at = b.Add(&groups[i].GroupHeader, groups[i].body)
				last = groups[i].Revision
			}
			b.Seal(end)
			copy(file[b.Offset()-end:], b.Bytes())
			groups = groups[n:]
		}
		if !bytes.Equal(file, whole) {
			t.Fatal("the file depends on how the groups were cut into writes")
		}
	})
}

// TestGeometry_HostileNumbers: no offset or length makes the arithmetic
// overflow into something that looks sound.
func TestGeometry_HostileNumbers(t *testing.T) {
	g := testGeometry(4096, 8)
	bad := []int64{-1, -8, math.MinInt64, math.MaxInt64, math.MaxInt64 - 7, maxOffset + 8}
	for _, n := range bad {
		if got := g.End(g.HeaderArea()+PageHeaderSize, n); got != -1 {
			t.Errorf("End(start, %d) = %d", n, got)
		}
		if got := g.End(n, 32); got != -1 {
			t.Errorf("End(%d, 32) = %d", n, got)
		}
		if g.MayStart(n) || g.MayEnd(n) {
			t.Errorf("%d: MayStart %v, MayEnd %v", n, g.MayStart(n), g.MayEnd(n))
		}
	}
	if got := g.End(maxOffset, maxOffset); got <= maxOffset {
		t.Errorf("End of the largest group = %d", got)
	}
	for end := g.HeaderArea(); end < g.HeaderArea()+2*4096; end++ {
		if start := g.Start(end); !g.MayStart(start) || start < end {
			t.Errorf("Start(%d) = %d", end, start)
		}
	}
	if far := int64(maxOffset) + PageHeaderSize; g.MayStart(far) || g.MayEnd(far+8) || !g.MayEnd(maxOffset) {
		t.Error("the largest offset is none")
	}
	for in := int64(8); in <= PageHeaderSize; in += 8 {
		if g.MayEnd(g.HeaderArea() + in) {
			t.Errorf("a group may end %d bytes into a page header", in)
		}
	}
	// An end inside a page header is nobody's; asking must not panic.
	if bad, err := g.CheckGap(make([]byte, 8), g.HeaderArea()+24, 0); bad != g.HeaderArea() || err != nil {
		t.Errorf("CheckGap in a page header = %d, %v", bad, err)
	}
}

// TestGeometry_Lineage: what starts below a fork's boundary keeps the salt of
// its own log.
func TestGeometry_Lineage(t *testing.T) {
	id := testIdentity(4096, 8)
	parent := id.Geometry()
	end := parent.HeaderArea() + 4096 + 512
	id.Lineage = []Ancestor{{LogID: id.LogID, Salt: id.Salt, End: end, Revision: 1}}
	id.LogID[0]++
	id.Salt++
	child := id.Geometry()
	groups := history(0, 0, oneRecord(4096+512-2*PageHeaderSize-GroupHeaderSize-RecordHeaderSize))
	b := NewBuilder(child)
	raw := layOut(b, child.HeaderArea(), 0, groups)
	if b.End() != end || !bytes.Equal(raw, layOut(NewBuilder(parent), parent.HeaderArea(), 0, groups)) {
		t.Fatal("below the boundary the child differs from its parent")
	}
	after := history(1, groups[0].Digest, oneRecord(9000))
	raw = layOut(b, end, 1, after)
	if _, err := walk(child, raw, b.Offset(), end, after[0], 1); err != nil {
		t.Fatal(err)
	}
	_, err := walk(parent, raw, b.Offset(), end, after[0], 1)
	wantErr(t, err, ErrMark)
	if child.IsMark(raw, end-8) || !child.IsMark(raw, end) {
		t.Error("the mark does not change at the boundary")
	}
}

// Wherever a group may end, the next one may start where Start puts it.
func TestGeometry_StartsWhereGroupsMayStart(t *testing.T) {
	for _, align := range []uint32{8, 512, 4096} {
		g := testGeometry(4096, align)
		for end := g.HeaderArea(); end <= g.HeaderArea()+3*g.PageSize(); end += 8 {
			if start := g.Start(end); g.MayEnd(end) && !g.MayStart(start) {
				t.Errorf("alignment %d: a group that ends at %d is followed at %d, where none may start", align, end, start)
			}
		}
	}
}
