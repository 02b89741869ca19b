package main

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

// The page of 'inspect --html': one file that needs nothing else, with the map
// of the log, its timeline, what is in it and what is wrong with it. It is
// bounded whatever the size of the log, and works without a script but for
// looking into single cells.

//go:embed inspect_html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

const (
	htmlCells    = 4096 // of the map
	htmlGroups   = 40
	htmlFindings = 250 // shown; the rest is counted
	htmlText     = 200 // bytes of what a finding says
)

// writeHTML writes the page to a file, whole or not at all, or to out for "-".
func writeHTML(out io.Writer, file, log string, p *pagelog.Picture) error {
	if file == "-" {
		return pageTemplate.Execute(out, newPage(filepath.Base(log), p))
	}
	if same(file, log) {
		return usagef("--html: %q is the log itself; name another file", file)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".tidemark-html-*")
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	err = pageTemplate.Execute(temp, newPage(filepath.Base(log), p))
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("--html: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

// same reports whether two paths lead to one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// page is what the template shows.
type page struct {
	Name     string
	Log      cursor.LogID
	Sound    bool
	Verdict  string
	Facts    []fact
	Map      pageMap
	Line     pageLine
	Kinds    []pageKind
	Findings []pagelog.Finding
	More     int // findings that are not shown
	Forks    []pagelog.ForkPart
	Groups   []pagelog.GroupPart
	First    int
	LeftOut  uint64
	Data     pageData
}

type fact struct{ Key, Value, Note string }

// pageData is what the script looks things up in.
type pageData struct {
	PageSize int       `json:"pageSize"`
	Columns  int       `json:"columns"`
	Names    []string  `json:"names"`
	Cells    [][]int64 `json:"cells"`
	Marks    []int64   `json:"marks"` // cells, in the order of the marks on the map
}

func newPage(name string, p *pagelog.Picture) *page {
	out := &page{
		Name: name, Log: p.Info.LogID, Sound: !p.Check.Corrupt, Verdict: verdict(p), Facts: facts(p), Forks: p.Forks,
		Groups: p.Groups, First: p.First, LeftOut: p.LeftOut, Kinds: pageKinds(p),
	}
	out.Findings = p.Check.Findings[:min(len(p.Check.Findings), htmlFindings)]
	for i := range out.Findings {
		out.Findings[i].What = short(out.Findings[i].What)
	}
	out.More = len(p.Check.Findings) - len(out.Findings) + p.Check.Uncounted
	out.drawMap(p)
	out.drawLine(p)
	return out
}

func short(text string) string {
	if len(text) > htmlText {
		return strings.ToValidUTF8(text[:htmlText], "") + "…"
	}
	return text
}

// verdict says in a sentence how the log is.
func verdict(p *pagelog.Picture) string {
	switch n := len(p.Check.Findings) + p.Check.Uncounted; {
	case p.Check.Corrupt:
		return fmt.Sprintf("Damaged: %s", firstDamage(&p.Check))
	case p.Check.Torn:
		return "Sound. It ends in a write that was never acknowledged, or is not all there yet."
	case n > 0:
		return fmt.Sprintf("Sound, with %s.", counted(uint64(n), "note"))
	}
	return "Sound: every byte was looked at, and holds."
}

func facts(p *pagelog.Picture) []fact {
	newest := 0
	if p.Slots[1].Newest {
		newest = 1
	}
	reach := fmt.Sprintf("revision %s to %s", grouped(p.Begin.Revision+1), grouped(p.Check.Head))
	if p.Check.Corrupt {
		reach = fmt.Sprintf("sound up to revision %s", grouped(p.Check.Head))
	}
	list := []fact{
		{"Commits", grouped(p.Check.Groups), reach},
		{"Records", grouped(p.Check.Records), counted(p.Tally.Keys, "index key")},
		{"File", sizeText(p.FileSize), fmt.Sprintf("%s bytes, pages of %s", grouped(uint64(p.FileSize)), sizeText(int64(p.Info.PageSize)))},
		{"Durable floor", sizeText(p.Proven), fmt.Sprintf("byte %s: what lies before was acknowledged", grouped(uint64(p.Proven)))},
		{"Writer", fmt.Sprintf("epoch %d", p.Slots[newest].Epoch), fmt.Sprintf("file generation %d", p.Info.Generation)},
		{"Checkpoints", grouped(p.Checkpoints), counted(p.Check.Derived, "derived group")},
	}
	if dropped := p.Begin.Offset - p.HeaderArea; dropped > 0 {
		list = append(list, fact{"Dropped", sizeText(dropped), fmt.Sprintf("up to revision %s, by retention", grouped(p.Begin.Revision))})
	}
	if ahead := p.FileSize - p.DirtEnd; ahead > 0 {
		list = append(list, fact{"Free", sizeText(ahead), "zeros written ahead"})
	}
	if p.Info.Superseded != 0 {
		list = append(list, fact{"Superseded", fmt.Sprintf("by generation %d", p.Info.Superseded), "if its name leads to another file"})
	}
	return list
}

// grouped writes a number in groups of three digits.
func grouped(n uint64) string {
	return strings.ReplaceAll(thousands(n), ",", "\u202f")
}

func counted(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(n) + " " + noun + "s"
}

func sizeText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if f == float64(int64(f)) {
		return fmt.Sprintf("%d %s", int64(f), units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// pageKind is a row of the sizes by kind.
type pageKind struct {
	Name       string
	Records    string
	Raw        string
	Stored     string
	Share      string // of all stored bytes, per cent
	Bar        string // width of its bar, per cent of the longest
	Compressed string
}

func pageKinds(p *pagelog.Picture) (rows []pageKind) {
	var all, most int64
	for _, k := range p.Tally.Kinds {
		all, most = all+k.Stored, max(most, k.Stored)
	}
	for _, k := range p.Tally.Kinds {
		row := pageKind{
			Name: kindName(k.Kind), Records: grouped(k.Records), Raw: sizeText(k.Raw), Stored: sizeText(k.Stored), Compressed: "—",
			Share: percent(k.Stored, all), Bar: fmt.Sprintf("%.1f", 100*float64(k.Stored)/float64(max(most, 1))),
		}
		if k.Kind == 0 {
			row.Name = "plain"
		}
		if k.Other {
			row.Name = "all other kinds"
		}
		if k.Compressed > 0 {
			row.Compressed = fmt.Sprintf("%s to %s of the size", counted(k.Compressed, "record"), percent(k.Stored, k.Raw))
		}
		rows = append(rows, row)
	}
	return rows
}

func percent(n, of int64) string {
	if of == 0 {
		return "0 %"
	}
	f := 100 * float64(n) / float64(of)
	if f > 0 && f < 0.1 {
		return "< 0.1 %"
	}
	return strings.Replace(fmt.Sprintf("%.1f %%", f), ".0 %", " %", 1)
}
