package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/pagelog"
)

// tree draws the file of a log for a person: one line for each thing, with its
// offset and size, indented by what it is a part of.
type tree struct {
	out      *strings.Builder
	p        *pagelog.Picture
	page     int64 // drawn last
	findings []pagelog.Finding
	floor    bool // the durable floor was drawn
}

// Depths of the tree.
const (
	depthTop = iota
	depthPart
	depthRecord
)

func (t *tree) line(off, size int64, depth int, format string, args ...any) {
	sizeText := "-"
	if size >= 0 {
		sizeText = fmt.Sprint(size)
	}
	fmt.Fprintf(t.out, "%12d %12s  %s%s\n", off, sizeText, strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
}

func (t *tree) draw() {
	p := t.p
	fmt.Fprintf(t.out, "%12s %12s\n", "OFFSET", "SIZE")
	t.header()
	for _, f := range p.Check.Findings {
		if f.Offset >= p.HeaderArea {
			t.findings = append(t.findings, f)
		}
	}
	if dropped := p.Begin.Offset - p.HeaderArea; dropped > 0 {
		t.line(p.HeaderArea, dropped, depthTop, "dropped by retention, up to revision %d", p.Begin.Revision)
	}
	t.passFloor(p.Begin.Offset)
	for i := range p.Groups {
		if i == p.First && p.LeftOut > 0 {
			t.leftOut(p.Groups[i].From)
		}
		t.group(&p.Groups[i])
	}
	if p.LeftOut > 0 && p.First == len(p.Groups) {
		t.leftOut(p.End)
	}
	t.notes(p.FileSize + 1)
	t.passFloor(p.FileSize)
	if p.DirtEnd > p.End {
		t.line(p.End, p.DirtEnd-p.End, depthTop, "%s", restText(p))
	}
	if p.FileSize > p.DirtEnd {
		t.line(p.DirtEnd, p.FileSize-p.DirtEnd, depthTop, "free: zeros written ahead")
	}
	t.line(p.FileSize, -1, depthTop, "end of the file")
	t.passFloor(math.MaxInt64) // the file was cut off
}

// restText says what lies behind the last group that holds.
func restText(p *pagelog.Picture) string {
	if p.Proven > p.End {
		return "!! no group that holds; acknowledged bytes are damaged here"
	}
	return "torn: a write that was never acknowledged, or is not all there yet"
}

func (t *tree) header() {
	p := t.p
	t.line(0, p.HeaderArea, depthTop, "header area")
	t.identity(0)
	t.slot(0)
	t.slot(1)
	t.identity(1)
	for _, f := range p.Check.Findings {
		if f.Offset < p.HeaderArea && f.Structure != "slot" && f.Structure != "identity" {
			t.line(f.Offset, -1, depthPart, "!! %s: %s", f.Structure, f.What)
		}
	}
}

func (t *tree) identity(i int) {
	p := t.p
	part := p.Identities[i]
	switch {
	case part.Problem != "":
		t.line(part.Offset, part.Size, depthPart, "!! identity, copy %d: %s", i, part.Problem)
		return
	case i == 1 && p.Identities[0].Problem == "":
		t.line(part.Offset, part.Size, depthPart, "identity, copy 1")
		return
	}
	t.line(part.Offset, part.Size, depthPart, "identity, copy %d: log %v, format %d, pages of %d bytes, made %s",
		i, p.Info.LogID, p.Info.FormatVersion, p.Info.PageSize, timeText(p.Info.Created))
	if b := p.Info.Base; b != (cursor.Cursor{}) {
		t.line(part.Offset, -1, depthRecord, "base: begins after revision %d (digest %v) of log %v", b.Revision, b.Digest, b.Log)
	}
	for _, c := range p.Info.Ancestors {
		t.line(part.Offset, -1, depthRecord, "forked from revision %d (digest %v) of log %v", c.Revision, c.Digest, c.Log)
	}
}

func (t *tree) slot(i int) {
	s := t.p.Slots[i]
	switch {
	case s.Unused:
		t.line(s.Offset, s.Size, depthPart, "slot %d: not used yet", i)
		return
	case s.Problem != "":
		t.line(s.Offset, s.Size, depthPart, "!! slot %d: %s", i, s.Problem)
		return
	}
	which := "older"
	if s.Newest {
		which = "newest"
	}
	t.line(s.Offset, s.Size, depthPart, "slot %d (%s): number %d, epoch %d, durable to %d (revision %d)",
		i, which, s.Number, s.Epoch, s.Durable.Offset, s.Durable.Revision)
	for _, m := range []struct {
		name string
		at   pagelog.Mark
	}{{"checkpoint", s.Check}, {"checkpoint before", s.Before}} {
		if m.at.Offset != 0 {
			t.line(s.Offset, -1, depthRecord, "%s at %d (revision %d)", m.name, m.at.Offset, m.at.Revision)
		}
	}
	for _, f := range t.p.Check.Findings {
		if f.Offset == s.Offset && f.Class != pagelog.ClassNote {
			t.line(s.Offset, -1, depthRecord, "!! %s", f.What)
		}
	}
}

// leftOut stands for the groups that are not shown, up to a place.
func (t *tree) leftOut(to int64) {
	from := t.p.HeaderArea
	if t.p.First > 0 {
		from = t.p.Groups[t.p.First-1].End
	}
	t.line(from, to-from, depthTop, "... %d groups are not shown; --limit shows more", t.p.LeftOut)
	t.notes(to)
	t.passFloor(to)
}

// group draws a group, and before it what lies before it.
func (t *tree) group(g *pagelog.GroupPart) {
	t.notes(g.Offset)
	t.passFloor(g.From)
	size := int64(t.p.Info.PageSize)
	if page := g.Offset / size; page != t.page {
		t.page = page
		t.line(page*size, size, depthTop, "page %d", page)
	}
	what := fmt.Sprintf("%s %d", g.Kind, g.Revision)
	if g.Kind != "commit" {
		what = fmt.Sprintf("%s at revision %d", g.Kind, g.Revision)
	}
	if last := (g.End - 1) / size; last > t.page {
		what += fmt.Sprintf(", up to page %d", last)
	}
	note := ""
	if g.Gap {
		note = ", behind damage"
	}
	t.line(g.Offset, g.End-g.Offset, depthPart, "%s: %s, epoch %d, digest %v, %s%s", what, countText(uint64(g.Count), "record"), g.Epoch, g.Digest, g.State, note)
	for i, r := range g.Records {
		t.line(r.Offset, r.Size, depthRecord, "record %d: %s", i, recordText(&r))
	}
	if n := g.Count - len(g.Records); n > 0 {
		t.line(g.End, -1, depthRecord, "... %s more", countText(uint64(n), "record"))
	}
	t.page = max(t.page, (g.End-1)/size)
}

func recordText(r *pagelog.RecordPart) string {
	text := countText(uint64(r.Raw), "byte")
	if r.Raw != r.Stored || codecName(r.Codec) != "plain" {
		text += fmt.Sprintf(", stored as %d (%s)", r.Stored, codecName(r.Codec))
	}
	if r.Kind != 0 {
		text += ", " + kindName(r.Kind)
	}
	if r.Required {
		text += ", required"
	}
	return text
}

// notes draws the findings that lie before a place.
func (t *tree) notes(before int64) {
	for len(t.findings) > 0 && t.findings[0].Offset < before {
		f := t.findings[0]
		t.findings = t.findings[1:]
		t.passFloor(f.Offset)
		sign := "!!"
		if f.Class == pagelog.ClassNote || f.Class == pagelog.ClassTorn {
			sign = f.Class + ":"
		}
		t.line(f.Offset, -1, depthPart, "%s %s: %s (page %d, revision %d)", sign, f.Structure, f.What, f.Page, f.Revision)
	}
}

// passFloor draws the durable floor when the tree comes to it.
func (t *tree) passFloor(at int64) {
	if !t.floor && at >= t.p.Proven {
		t.floor = true
		t.line(t.p.Proven, -1, depthTop, "---- durable floor: what lies before was acknowledged ----")
	}
}

// letters are how the map shows the state of a cell.
var letters = []struct{ state, letter, means string }{
	{"header", "H", "header area"},
	{"commits", "c", "commits"},
	{"derived", "k", "commits and checkpoints, or other derived groups"},
	{"index", "x", "mostly runs of the keyed index"},
	{"unsynced", "u", "whole groups that are not proven durable"},
	{"torn", "t", "a torn write, never acknowledged"},
	{"damaged", "!", "damage to acknowledged or derived bytes"},
	{"dropped", "-", "dropped by retention"},
	{"ahead", ".", "zeros written ahead"},
}

// drawMap draws the pages as characters, with a legend of those that occur.
func drawMap(b *strings.Builder, p *pagelog.Picture) {
	if p.CellPages == 1 {
		fmt.Fprintf(b, "map: one character is a page of %d bytes\n", p.Info.PageSize)
	} else {
		fmt.Fprintf(b, "map: one character is %d pages of %d bytes; it shows the worst of what is in them\n", p.CellPages, p.Info.PageSize)
	}
	const width = 64
	seen := map[string]bool{}
	for i := range p.Map {
		if i%width == 0 {
			fmt.Fprintf(b, "%12d  ", p.Map[i].Page*int64(p.Info.PageSize))
		}
		state := p.Map[i].State()
		seen[state] = true
		for _, l := range letters {
			if l.state == state {
				b.WriteString(l.letter)
			}
		}
		if i%width == width-1 || i == len(p.Map)-1 {
			b.WriteByte('\n')
		}
	}
	for _, l := range letters {
		if seen[l.state] {
			fmt.Fprintf(b, "%14s%s  %s\n", "", l.letter, l.means)
		}
	}
}

// kindName names the kind of a record.
func kindName(kind uint32) string {
	names := map[uint32]string{
		frame.KindCheckpoint: "checkpoint", frame.KindBlob: "state of the host", frame.KindIndexRun: "index run",
		frame.KindFloor: "floor", frame.KindIndexKey: "index key", frame.KindFork: "fork", frame.KindSalvaged: "salvaged",
	}
	if name, ok := names[kind]; ok {
		return name
	}
	return fmt.Sprintf("kind %d", kind)
}
