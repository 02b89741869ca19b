package pagelog

// The map of a log: its pages in cells, and how many bytes of each cell hold
// what. It is drawn while the file is read; a stretch of groups is drawn once
// it is known whether it was acknowledged.

// Cell is a run of pages on the map of a Picture. The byte counts add up to
// what the file has of these pages.
type Cell struct {
	Page     int64 `json:"page"`     // first page
	Pages    int64 `json:"pages"`    // how many
	Header   int64 `json:"header"`   // bytes of the header area
	Dropped  int64 `json:"dropped"`  // bytes that retention dropped
	Commits  int64 `json:"commits"`  // bytes of acknowledged commits, page headers and padding included
	Derived  int64 `json:"derived"`  // bytes of checkpoints, and of derived groups other than index runs
	Index    int64 `json:"index"`    // bytes of index runs
	Unsynced int64 `json:"unsynced"` // bytes of groups that are whole and not proven acknowledged
	Torn     int64 `json:"torn"`     // bytes of a write that a crash cut
	Damaged  int64 `json:"damaged"`  // bytes below the durable floor that are no group
	Ahead    int64 `json:"ahead"`    // bytes of zeros written ahead
	Findings int   `json:"findings"` // findings of damage in these pages
}

// content is what bytes on the map may be.
type content int

const (
	cellHeader content = iota
	cellDropped
	cellCommits
	cellDerived
	cellIndex
	cellUnsynced
	cellTorn
	cellDamaged
	cellAhead
)

// State says in one word what a cell holds: what is wrong with it, if anything,
// else what is special in it: damaged, header, torn, unsynced, derived, index,
// commits, dropped or ahead, the first of them that holds.
func (c *Cell) State() string {
	switch {
	case c.Damaged > 0 || c.Findings > 0:
		return "damaged"
	case c.Header > 0:
		return "header"
	case c.Torn > 0:
		return "torn"
	case c.Unsynced > 0:
		return "unsynced"
	case c.Derived > 0:
		return "derived"
	case c.Index > 0 && c.Index >= c.Commits:
		return "index"
	case c.Commits > 0:
		return "commits"
	case c.Dropped > 0:
		return "dropped"
	}
	return "ahead"
}

func (c *Cell) of(what content) *int64 {
	return [...]*int64{
		cellHeader: &c.Header, cellDropped: &c.Dropped, cellCommits: &c.Commits, cellDerived: &c.Derived, cellIndex: &c.Index,
		cellUnsynced: &c.Unsynced, cellTorn: &c.Torn, cellDamaged: &c.Damaged, cellAhead: &c.Ahead,
	}[what]
}

// grid divides the pages of the file into cells.
func (in *inspector) grid() {
	size, page := in.v.size, in.v.geo.PageSize()
	pages := (size + page - 1) / page
	cells := int64(in.opts.Cells)
	in.pic.CellPages = max((pages+cells-1)/cells, 1)
	for first := int64(0); first < pages; first += in.pic.CellPages {
		in.pic.Map = append(in.pic.Map, Cell{Page: first, Pages: min(in.pic.CellPages, pages-first)})
	}
}

// paint puts bytes on the map.
func (in *inspector) paint(from, to int64, what content) {
	width := in.pic.CellPages * in.v.geo.PageSize()
	to = min(to, in.v.size)
	for from < to {
		next := min((from/width+1)*width, to)
		*in.pic.Map[from/width].of(what) += next - from
		from = next
	}
}

// draw puts a group on the map, and what lies before it and is none.
func (in *inspector) draw(p *passed, kind string) {
	if p.before.end > in.drawn {
		in.flush(in.v.proven)
		what := cellDamaged
		if p.before.end <= in.v.head.begin().end { // retention dropped it meanwhile
			what = cellDropped
		}
		in.paint(in.drawn, p.before.end, what)
	}
	from, what := max(in.drawn, p.before.end), contentOf(kind)
	if n := len(in.recent); n > 0 && in.recent[n-1].what == what && in.recent[n-1].to == from {
		in.recent[n-1].to = p.end
	} else {
		in.recent = append(in.recent, span{from, p.end, what})
	}
	in.drawn = max(in.drawn, p.end)
	in.flush(in.v.proven)
}

// flush draws the groups below the proven end.
func (in *inspector) flush(proven int64) {
	done := 0
	for i := range in.recent {
		r := &in.recent[i]
		to := min(r.to, proven)
		if to > r.from {
			in.paint(r.from, to, r.what)
			r.from = to
		}
		if r.from < r.to {
			break
		}
		done++
	}
	in.recent = append(in.recent[:0], in.recent[done:]...)
}

func contentOf(kind string) content {
	switch kind {
	case kindCommit:
		return cellCommits
	case kindIndexRun:
		return cellIndex
	}
	return cellDerived
}

// finishMap draws what lies behind the last group that was acknowledged.
func (in *inspector) finishMap() {
	p := &in.pic
	in.flush(p.Proven)
	for _, r := range in.recent {
		in.paint(r.from, min(r.to, p.End), cellUnsynced)
	}
	in.recent = nil
	behind := max(p.End, p.Begin.Offset)
	in.paint(in.drawn, behind, cellDamaged) // a damaged group's header leads on, and nothing follows
	damaged := min(max(p.Proven, behind), p.FileSize)
	in.paint(behind, damaged, cellDamaged)
	in.paint(damaged, max(p.DirtEnd, damaged), cellTorn)
	in.paint(max(p.DirtEnd, damaged), p.FileSize, cellAhead)
	for _, f := range p.Check.Findings {
		cell := f.Page / p.CellPages
		if f.Class == ClassNote || f.Class == ClassTorn || cell >= int64(len(p.Map)) {
			continue
		}
		p.Map[cell].Findings++
	}
}
