package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/pagelog"
)

// pageMap is the map as paths of an SVG, one unit a cell.
type pageMap struct {
	Columns, Rows int
	Width         int // pixels, at most
	Each          string
	Paths         []statePath
	Signs         []statePath // drawn over cells, so that colour is not all that tells
	Dots          []dot
	Legend        []legend
	Stretches     []mapStretch // the same as a table
	Left          int          // stretches that are not in the table
	Summary       string
}

// statePath is all cells of one state.
type statePath struct{ State, D string }

// Has reports whether a mark of one of these kinds is on the map.
func (m *pageMap) Has(kinds ...string) bool {
	return slices.ContainsFunc(m.Dots, func(d dot) bool { return slices.Contains(kinds, d.Kind) })
}

// dot is a mark on a cell.
type dot struct {
	Kind  string
	X, Y  string
	Title string
}

type legend struct{ State, Name, Share string }

// mapStretch is a run of cells of one state.
type mapStretch struct {
	First, Last int64 // pages
	State       string
}

// stateNames are what a person calls the states, in the order of the legend.
var stateNames = []struct{ state, name string }{
	{"header", "header area"},
	{"commits", "commits"},
	{"derived", "checkpoint among them"},
	{"index", "index run"},
	{"unsynced", "whole, not proven durable"},
	{"torn", "torn: never acknowledged"},
	{"damaged", "corrupt"},
	{"dropped", "retained away"},
	{"ahead", "free: zeros ahead"},
}

func stateName(state string) string {
	for _, s := range stateNames {
		if s.state == state {
			return s.name
		}
	}
	return state
}

const stretchRows = 300 // of the table beside the map

// drawMap draws the cells.
func (out *page) drawMap(p *pagelog.Picture) {
	m := &out.Map
	m.Columns = 64
	if len(p.Map) <= 512 {
		m.Columns = 32
	}
	m.Columns = max(min(m.Columns, len(p.Map)), 1)
	m.Rows = (len(p.Map) + m.Columns - 1) / m.Columns
	m.Width = m.Columns * 992 / max(m.Columns, 32)
	m.Each = "a page of " + sizeText(int64(p.Info.PageSize))
	if p.CellPages > 1 {
		m.Each = fmt.Sprintf("%d pages of %s; it shows the worst of what is in them", p.CellPages, sizeText(int64(p.Info.PageSize)))
	}
	paths, signs, counts := map[string]*strings.Builder{}, map[string]*strings.Builder{}, map[string]int{}
	for i := range p.Map {
		state := p.Map[i].State()
		x, y := i%m.Columns, i/m.Columns
		counts[state]++
		fmt.Fprintf(in(paths, state), "M%d.06 %d.06h.88v.88h-.88z", x, y)
		switch state {
		case "damaged":
			fmt.Fprintf(in(signs, state), "M%d.25 %d.25l.5.5m-.5 0l.5-.5", x, y)
		case "torn":
			fmt.Fprintf(in(signs, state), "M%d.2 %d.8l.6-.6", x, y)
		case "dropped":
			fmt.Fprintf(in(signs, state), "M%d.3 %d.5h.4", x, y)
		}
		m.stretch(&p.Map[i], state)
	}
	for _, s := range stateNames {
		if counts[s.state] > 0 {
			m.Paths = append(m.Paths, statePath{s.state, paths[s.state].String()})
			m.Legend = append(m.Legend, legend{s.state, s.name, percent(int64(counts[s.state]), int64(len(p.Map)))})
		}
		if b := signs[s.state]; b != nil {
			m.Signs = append(m.Signs, statePath{s.state, b.String()})
		}
	}
	m.Summary = m.summary(p)
	out.drawMarks(p)
	out.data(p)
}

func in(paths map[string]*strings.Builder, state string) *strings.Builder {
	if paths[state] == nil {
		paths[state] = &strings.Builder{}
	}
	return paths[state]
}

// stretch adds a cell to the table.
func (m *pageMap) stretch(c *pagelog.Cell, state string) {
	n := len(m.Stretches)
	switch name := stateName(state); {
	case n > 0 && m.Left == 0 && m.Stretches[n-1].State == name:
		m.Stretches[n-1].Last = c.Page + c.Pages - 1
	case n == stretchRows:
		m.Left++
	default:
		m.Stretches = append(m.Stretches, mapStretch{c.Page, c.Page + c.Pages - 1, name})
	}
}

// summary is what the map shows, in words.
func (m *pageMap) summary(p *pagelog.Picture) string {
	parts := []string{}
	for _, l := range m.Legend {
		parts = append(parts, l.Share+" "+l.Name)
	}
	return fmt.Sprintf("%s in %s: %s.", counted(uint64(pagesOf(p)), "page"), counted(uint64(len(p.Map)), "cell"), strings.Join(parts, ", "))
}

func pagesOf(p *pagelog.Picture) (n int64) {
	for _, c := range p.Map {
		n += c.Pages
	}
	return n
}

// drawMarks puts floors, checkpoints and forks on the map.
func (out *page) drawMarks(p *pagelog.Picture) {
	width := max(p.CellPages*int64(p.Info.PageSize), 1)
	out.Data.Marks = []int64{}
	mark := func(kind string, off int64, text string) {
		cell := off / width
		if cell >= int64(len(p.Map)) {
			cell = int64(len(p.Map)) - 1
		}
		if cell < 0 {
			return
		}
		x := float64(cell%int64(out.Map.Columns)) + 0.06 + 0.88*float64(off%width)/float64(width)
		y := cell / int64(out.Map.Columns)
		out.Map.Dots = append(out.Map.Dots, dot{kind, fmt.Sprintf("%.2f", x), fmt.Sprint(y), text})
		out.Data.Marks = append(out.Data.Marks, cell)
	}
	mark("durable", p.Proven, fmt.Sprintf("durable floor at byte %s: what lies before was acknowledged", grouped(uint64(p.Proven))))
	for _, x := range p.Tally.Places {
		mark(x.Kind, x.Offset, fmt.Sprintf("%s at byte %s, revision %s", x.Kind, grouped(uint64(x.Offset)), grouped(x.Revision)))
	}
	for _, f := range p.Forks {
		mark("boundary", f.End, fmt.Sprintf("forked here from log %v, after revision %s", f.Log, grouped(f.Revision)))
	}
	if p.Begin.Offset > p.HeaderArea {
		mark("retention", p.Begin.Offset, fmt.Sprintf("retention floor: revisions up to %s were dropped", grouped(p.Begin.Revision)))
	}
}

// data is what the script shows of single cells.
func (out *page) data(p *pagelog.Picture) {
	d := &out.Data
	d.PageSize, d.Columns = p.Info.PageSize, out.Map.Columns
	for _, s := range stateNames {
		d.Names = append(d.Names, s.name)
	}
	d.Cells = [][]int64{}
	for _, c := range p.Map {
		d.Cells = append(d.Cells, []int64{
			c.Page, c.Pages, int64(c.Findings), c.Header, c.Commits, c.Derived, c.Index, c.Unsynced, c.Torn, c.Damaged, c.Dropped, c.Ahead,
		})
	}
}

// pageLine is the timeline as bars of an SVG.
type pageLine struct {
	Width   int
	Span    int // Width, with room for marks at both ends
	Bars    []lineBar
	Writers []writer
	Begin   string
	End     string
	First   string
	Last    string
	Top     string
	Summary string
}

type lineBar struct{ X, Y, W, H, Title string }

// writer is where a writer's epoch begins.
type writer struct{ X, Title string }

const lineHeight = 120

// drawLine draws the commits: a bar a stretch, as high as its bytes for each
// commit are many.
func (out *page) drawLine(p *pagelog.Picture) {
	l, line := &out.Line, p.Tally.Timeline
	if len(line) == 0 {
		return
	}
	most := 1.0
	for i := range line {
		most = max(most, each(&line[i]))
	}
	l.Width, l.Span = 960, 972
	step := float64(l.Width) / float64(len(line))
	gap := min(1.5, step/5)
	for i := range line {
		s := &line[i]
		x, h := float64(i)*step, max(2, math.Sqrt(each(s)/most)*lineHeight)
		text := fmt.Sprintf("revisions %s to %s: %s, %s in %s, %s a commit, from %s to %s, epoch %d",
			grouped(s.First), grouped(s.Last), counted(s.Commits, "commit"), sizeText(s.To-s.From), counted(s.Records, "record"),
			sizeText(int64(each(s))), timeOf(s.Begin), timeOf(s.End), s.Epoch)
		l.Bars = append(l.Bars, lineBar{
			fmt.Sprintf("%.2f", x), fmt.Sprintf("%.2f", lineHeight-h), fmt.Sprintf("%.2f", min(step-gap, 60)), fmt.Sprintf("%.2f", h), text,
		})
		if s.Writers > 0 {
			l.Writers = append(l.Writers, writer{fmt.Sprintf("%.2f", x), fmt.Sprintf("%s, the last with epoch %d", counted(s.Writers, "writer"), s.Epoch)})
		}
	}
	last := &line[len(line)-1]
	l.Begin, l.End = timeOf(line[0].Begin), timeOf(last.End)
	l.First, l.Last, l.Top = grouped(line[0].First), grouped(last.Last), sizeText(int64(most))
	l.Summary = fmt.Sprintf("%s in %s, from %s to %s by the writers' clocks; at most %s a commit on average.",
		counted(p.Check.Groups, "commit"), fmt.Sprintf("%d stretches", len(line)), l.Begin, l.End, l.Top)
}

func each(s *pagelog.Stretch) float64 { return float64(s.To-s.From) / float64(s.Commits) }

// timeOf is a time by the writer's clock, to the second.
func timeOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
