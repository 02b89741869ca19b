package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/pagelog"
)

// picturedLog makes a log with a bit of everything, and its page.
func picturedLog(t *testing.T) (path, html string) {
	t.Helper()
	dir := t.TempDir()
	source, path, html := filepath.Join(dir, "source.log"), filepath.Join(dir, "run.log"), filepath.Join(dir, "out.html")
	tidemark(t, "", "create", source, "--page-size", "4K").want(t, 0)
	tidemark(t, joined(numbered(900)), "append", source, "--group", "3").want(t, 0)
	tidemark(t, "state", "checkpoint", source, "--blob", "-").want(t, 0)
	tidemark(t, "", "fork", source, path, "--at", "250").want(t, 0)
	tidemark(t, joined(numbered(600)), "append", path, "--group", "2").want(t, 0)
	tidemark(t, "", "checkpoint", path).want(t, 0)
	tidemark(t, "", "inspect", path, "--html", html).want(t, 0).prints(t, "")
	return path, html
}

// outsiders is whatever would make a page ask for something else.
var outsiders = regexp.MustCompile(`(?i)https?://|src=|@import|url\(|fetch\(|XMLHttp|WebSocket|<link[^>]+href="[^d]|<iframe|<object|<base`)

// TestInspect_L53_HTML: one page that holds everything, asks for nothing, and
// says where damage is.
func TestInspect_L53_HTML(t *testing.T) {
	t.Parallel()
	path, html := picturedLog(t)
	text := string(read(t, html))
	for _, part := range []string{
		"Map of the file", "Timeline of commits", "Sizes by record kind", "Findings", "Where it comes from", "Sound: every byte was looked at, and holds.",
		`<html lang="en">`, "Content-Security-Policy", "default-src 'none'", "prefers-color-scheme: dark", "after revision 250", "checkpoint at byte",
		"durable floor at byte", `class="c-commits"`, `class="c-derived"`, `class="c-header"`, `class="c-ahead"`, "plain", "fork",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not show %q", part)
		}
	}
	if found := outsiders.FindString(text); found != "" {
		t.Errorf("the page asks for something else: %q", found)
	}
	for _, m := range regexp.MustCompile(`aria-(?:labelledby|describedby)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(text, `id="`+m[1]+`"`) {
			t.Errorf("%s leads nowhere", m[0])
		}
	}
	same := tidemark(t, "", "inspect", path, "--html", "-").want(t, 0)
	if same.out != text {
		t.Error("standard output and file differ")
	}
	// Damage: shown, linked, and the exit code of inspect.
	bad := read(t, path)
	bad[60000] ^= 1
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	tidemark(t, "", "inspect", path, "--html", html).want(t, 1, "damage to acknowledged bytes")
	text = string(read(t, html))
	if !strings.Contains(text, "Damaged: offset") || !strings.Contains(text, `data-page="14"`) || !strings.Contains(text, `class="c-damaged"`) {
		t.Error("the page does not show the damage")
	}
	names, err := os.ReadDir(filepath.Dir(html))
	if err != nil || len(names) != 3 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// TestInspect_L53_HTMLRefusals: nothing is written over that should not be.
func TestInspect_L53_HTMLRefusals(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a")
	before := read(t, path)
	tidemark(t, "", "inspect", path, "--html", path).want(t, 2, "the log itself")
	tidemark(t, "", "inspect", path, "--html", filepath.Join(path, "x")).want(t, 2, "--html")
	tidemark(t, "", "inspect", path, "--html", "").want(t, 2, "it is empty")
	tidemark(t, "", "inspect", path, "--html", "x", "--json").want(t, 2, "goes with neither")
	if !bytes.Equal(read(t, path), before) {
		t.Error("the log changed")
	}
}

// TestInspect_L53_HTMLBounded: the page of the worst log of 10 GiB, whose every
// cell is something else, has less than a MiB, and what others wrote is text.
func TestInspect_L53_HTMLBounded(t *testing.T) {
	t.Parallel()
	const hostile = `<script>alert("1")</script>`
	p := &pagelog.Picture{CellPages: 160, FileSize: 10 << 30, HeaderArea: 16384, Proven: 9 << 30, LeftOut: 1 << 40, First: 20}
	p.Info.PageSize = 16384
	width := p.CellPages * 16384
	for i := range int64(htmlCells) {
		n := width / 9
		p.Map = append(p.Map, pagelog.Cell{
			Page: i * 160, Pages: 160, Commits: n + i, Derived: n * (i % 2), Index: n, Unsynced: n * (i % 3), Torn: n, Damaged: n * (i % 5), Dropped: n, Ahead: n, Findings: int(i),
		})
	}
	for i := range 240 {
		p.Tally.Timeline = append(p.Tally.Timeline, pagelog.Stretch{
			First: uint64(i) << 30, Last: uint64(i+1)<<30 - 1, From: int64(i) << 25, To: int64(i+1) << 25, Commits: 1 << 30, Records: 1 << 40,
			Begin: time.Unix(1, 0), End: time.Unix(1<<33, 0), Writers: 7, Epoch: 1 << 40,
		})
	}
	for i := range 768 {
		p.Tally.Places = append(p.Tally.Places, pagelog.PlacePart{Kind: []string{"checkpoint", "floor", "fork"}[i%3], Offset: int64(i) << 23, Revision: 1 << 60})
	}
	for i := range 65 {
		p.Tally.Kinds = append(p.Tally.Kinds, pagelog.KindTally{Kind: uint32(i) << 25, Records: 1 << 60, Compressed: 1 << 50, Stored: 1 << 60, Raw: 1 << 61})
	}
	for i := range pagelog.MaxFindings {
		p.Check.Findings = append(p.Check.Findings, pagelog.Finding{
			Offset: 1 << 60, Page: int64(i), Revision: 1 << 60, Structure: "checkpoint", Class: pagelog.ClassBridged, What: hostile + strings.Repeat("\u202e<&>", 400),
		})
	}
	for range 48 {
		p.Forks = append(p.Forks, pagelog.ForkPart{End: 1 << 50, Revision: 1 << 60})
	}
	for range htmlGroups {
		p.Groups = append(p.Groups, pagelog.GroupPart{Offset: 1 << 60, End: 1 << 60, Kind: "checkpoint", State: "complete", Revision: 1 << 60})
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, newPage(hostile, p)); err != nil {
		t.Fatal(err)
	}
	if b.Len() >= 1<<20 {
		t.Errorf("the page has %d bytes", b.Len())
	}
	if strings.Contains(b.String(), hostile) {
		t.Error("what others wrote is not text")
	}
	t.Logf("%d bytes", b.Len())
	if err := pageTemplate.Execute(&b, newPage("nothing", &pagelog.Picture{CellPages: 1})); err != nil {
		t.Error(err)
	}
	if got := strings.Join([]string{grouped(1), grouped(1000), sizeText(1536), percent(1, 3), percent(1, 5000), percent(0, 0)}, " "); got != "1 1\u202f000 1.5 KiB 33.3 % < 0.1 % 0 %" {
		t.Error(got)
	}
}
