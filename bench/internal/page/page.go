// Package page writes results as Markdown: tables for the reader of a
// document, and what it says about losses comes from the figures, not from
// the author.
package page

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/device"
	"github.com/tidemark-log/tidemark/bench/internal/figure"
	"github.com/tidemark-log/tidemark/bench/internal/report"
	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

// Titles says in a line what each workload does.
type Titles map[string]string

// Write returns the results as Markdown. Pictures are linked from plots, a path
// as seen from the document.
func Write(d *report.Document, titles Titles, plots string) string {
	var b strings.Builder
	writeMachine(&b, d)
	writePeers(&b, d)
	for _, group := range groupCases(d) {
		writeGroup(&b, d, group, titles)
		for _, c := range group {
			fmt.Fprintf(&b, "![%s %s on %s](%s/%s)\n", c.Workload, c.Variant, c.FileSystem, plots, figure.FileName(c))
		}
		b.WriteString("\n")
	}
	writeLosses(&b, d)
	writeBars(&b, d)
	writeSkips(&b, d)
	return b.String()
}

func writeMachine(b *strings.Builder, d *report.Document) {
	m := d.Machine
	fmt.Fprintf(b, "Taken %s in %.0f minutes on %d cores of %s, %.0f GiB of memory, Linux %s, %s, load average %s at the start.",
		d.Taken.Format("2006-01-02 15:04 MST"), math.Ceil(d.Seconds/60), m.Cores, m.CPU,
		float64(m.MemoryBytes)/(1<<30), m.Kernel, m.Go, m.LoadAverage)
	if d.Quick {
		b.WriteString(" **A quick run: few rounds, small sizes.**")
	}
	if d.Note != "" {
		fmt.Fprintf(b, " Note: %s.", strings.TrimSuffix(d.Note, "."))
	}
	b.WriteString("\n\n| file system | type | journal | device | options |\n|---|---|---|---|---|\n")
	for _, f := range d.FileSystems {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", f.Name, f.Type, journal(f), orDash(f.Device), f.Options)
	}
	b.WriteString("\n")
}

func journal(f device.FileSystem) string {
	if strings.HasPrefix(f.Type, "ext") {
		return f.Journal
	}
	return "-"
}

func writePeers(b *strings.Builder, d *report.Document) {
	b.WriteString("| peer | version | sums | atomic groups | index | random reads from | mind |\n|---|---|---|---|---|---|---|\n")
	for _, p := range d.Peers {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", p.Name, orDash(p.Version), p.Traits.Sums,
			yesNo(p.Traits.Atomic), yesNo(p.Traits.Index), orDash(string(p.Traits.Reads)), p.Traits.Note)
	}
	b.WriteString("\n")
}

// groupCases puts the variants of a workload on one file system together.
func groupCases(d *report.Document) [][]report.Case {
	var groups [][]report.Case
	for _, c := range d.Cases() {
		i := slices.IndexFunc(groups, func(g []report.Case) bool {
			return g[0].Workload == c.Workload && g[0].FileSystem == c.FileSystem
		})
		if i < 0 {
			groups = append(groups, []report.Case{c})
			continue
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// writeGroup writes one table: peers down, variants across.
func writeGroup(b *strings.Builder, d *report.Document, group []report.Case, titles Titles) {
	first := group[0]
	metric := report.Headline(first.Workload)
	direction := "lower is better"
	if report.HigherIsBetter(metric) {
		direction = "higher is better"
	}
	fmt.Fprintf(b, "### %s on %s: %s\n\nMedian with 95 %% interval in %s, %s; × is the ratio to the floor in the same rounds.\n\n| peer |",
		first.Workload, first.FileSystem, titles[first.Workload], report.Unit(metric), direction)
	for _, c := range group {
		fmt.Fprintf(b, " %s |", c.Variant)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(group)) + "\n")
	for _, p := range d.Peers {
		cells, any := "", false
		for _, c := range group {
			cell := cellOf(d, c, p.Name, metric)
			any = any || cell != "-"
			cells += " " + cell + " |"
		}
		if any {
			fmt.Fprintf(b, "| %s |%s\n", emphasis(p), cells)
		}
	}
	b.WriteString("\n")
}

func emphasis(p report.Peer) string {
	switch p.Kind {
	case bench.Subject:
		return "**" + p.Name + "**"
	case bench.Floor:
		return "*" + p.Name + "*"
	}
	return p.Name
}

func cellOf(d *report.Document, c report.Case, peer, metric string) string {
	f := d.Find(c, peer, metric)
	if f == nil {
		return "-"
	}
	cell := fmt.Sprintf("%s [%s to %s]", number(f.Median), number(f.Low), number(f.High))
	i := slices.IndexFunc(d.Ratios, func(r report.Ratio) bool {
		return r.Case == c && r.Peer == peer && r.Metric == metric
	})
	if i >= 0 {
		cell += fmt.Sprintf(", %.2f ×", d.Ratios[i].Median)
	}
	return cell
}

// writeLosses lists every case in which rivals are surely ahead.
func writeLosses(b *strings.Builder, d *report.Document) {
	b.WriteString("### Where Tidemark loses\n\nRivals whose whole interval is ahead of ours, with their ratio to ours. " +
		"What each does less or more stands in the table of peers.\n\n")
	lost := false
	for _, c := range d.Cases() {
		if ahead := aheadOf(d, c); len(ahead) > 0 {
			lost = true
			fmt.Fprintf(b, "- %s %s on %s, %s: %s\n", c.Workload, c.Variant, c.FileSystem,
				report.Headline(c.Workload), strings.Join(ahead, "; "))
		}
	}
	if !lost {
		b.WriteString("Nowhere in this run.\n")
	}
	b.WriteString("\n")
}

// aheadOf returns the rivals that are surely ahead in a case, in words.
func aheadOf(d *report.Document, c report.Case) []string {
	metric := report.Headline(c.Workload)
	ours := d.Find(c, bench.TidemarkName, metric)
	if ours == nil {
		return nil
	}
	var all []string
	for _, p := range d.Peers {
		theirs := d.Find(c, p.Name, metric)
		if p.Kind != bench.Rival || theirs == nil {
			continue
		}
		if r := stat.Ratio(theirs.Rounds, ours.Rounds); ahead(metric, r) {
			all = append(all, fmt.Sprintf("%s %.2f × [%.2f to %.2f]", p.Name, r.Median, r.Low, r.High))
		}
	}
	return all
}

// ahead reports whether the whole interval of a rival's ratio is on its side.
func ahead(metric string, r stat.Estimate) bool {
	if report.HigherIsBetter(metric) {
		return r.Low > 1
	}
	return r.High < 1
}

func writeBars(b *strings.Builder, d *report.Document) {
	b.WriteString("### Bars\n\n| workload | variant | on | peer | metric | against | want | got | verdict |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, j := range d.Judge() {
		got := j.Reason
		if j.Verdict != report.Unmeasured {
			got = fmt.Sprintf("%s [%s to %s]", number(j.Got.Median), number(j.Got.Low), number(j.Got.High))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", j.Workload, j.Variant, j.FileSystem, j.Peer,
			j.Metric, orDash(j.Base), j.Want, got, j.Verdict)
	}
	b.WriteString("\n")
}

func writeSkips(b *strings.Builder, d *report.Document) {
	if len(d.Skipped) == 0 {
		return
	}
	b.WriteString("### Not measured\n\n")
	for _, s := range d.Skipped {
		what := strings.Join(strings.Fields(s.Workload+" "+s.Variant+" "+s.Peer), " ")
		if what == "" {
			what = "everything"
		}
		fmt.Fprintf(b, "- %s on %s: %s\n", what, s.FileSystem, s.Reason)
	}
	b.WriteString("\n")
}

// Marks around the part of a document that is generated.
const (
	begin = "<!-- results: written by tmbench table, do not edit -->"
	end   = "<!-- end of results -->"
)

// ErrNoMarks means that a document does not say where its results go.
var ErrNoMarks = errors.New("no place for results: put these two lines in, in this order: " + begin + " and " + end)

// Insert replaces what is between the marks of a document.
func Insert(document, results string) (string, error) {
	before, rest, ok := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", ErrNoMarks
	}
	return before + begin + "\n\n" + strings.TrimSpace(results) + "\n\n" + end + after, nil
}

// number writes three figures, with thousands set apart.
func number(v float64) string {
	if math.Abs(v) < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	digits := fmt.Sprintf("%.0f", math.Abs(v))
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	sign := ""
	if v < 0 {
		sign = "-"
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
