// Package report is the result of a benchmark run: every figure with its
// interval and the rounds it came from, ratios to the floor, and the bars the
// project holds itself to.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/device"
	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

// Schema is the version of the document. It goes up when a reader of an older
// one would misread it.
const Schema = 1

// Metrics a figure may be of, with their units.
const (
	Rate       = "rate"       // commits per second
	P50        = "p50"        // µs, median latency of a commit
	P99        = "p99"        // µs
	CPU        = "cpu"        // µs of processor time per commit
	Allocs     = "allocs"     // heap allocations per commit or record
	Bytes      = "bytes"      // device bytes per commit
	Flushes    = "flushes"    // device flushes per commit
	Throughput = "throughput" // MB/s of payload
	ReadTime   = "read"       // ns per random read
	OpenTime   = "open"       // ms from open to the first use
	Delay      = "delay"      // µs, median from acknowledgement to the follower
	DelayP99   = "delay_p99"  // µs
	HeapBytes  = "heap"       // bytes of heap per open log
	Files      = "files"      // descriptors per open log
)

// units holds the unit of each metric.
var units = map[string]string{
	Rate: "commits/s", P50: "µs", P99: "µs", CPU: "µs", Allocs: "allocations",
	Bytes: "bytes", Flushes: "flushes", Throughput: "MB/s", ReadTime: "ns",
	OpenTime: "ms", Delay: "µs", DelayP99: "µs", HeapBytes: "bytes", Files: "descriptors",
}

// Unit returns the unit of a metric.
func Unit(metric string) string { return units[metric] }

// HigherIsBetter reports which way a metric should go.
func HigherIsBetter(metric string) bool { return metric == Rate || metric == Throughput }

// headlines holds the metric a workload is about.
var headlines = map[string]string{
	"W1": Rate, "W2": Rate, "W3": Rate, "W4": Rate, "W5": Throughput, "W6": Throughput,
	"W7": ReadTime, "W8": OpenTime, "W9": Bytes, "W10": Delay, "W11": Rate, "W12": Throughput,
}

// Headline returns the metric a workload is about.
func Headline(workload string) string { return headlines[workload] }

// Case names one comparison: all peers in the same rounds.
type Case struct {
	Workload   string `json:"workload"`    // "W1"
	Variant    string `json:"variant"`     // "256 B"
	FileSystem string `json:"file_system"` // name of one of the file systems
}

// Figure is one metric of one peer in one case.
type Figure struct {
	Case
	Peer   string `json:"peer"`
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	stat.Estimate
	Rounds []float64 `json:"rounds"` // in order; equal positions ran side by side
}

// Ratio is a figure divided by the floor's, round by round.
type Ratio struct {
	Case
	Peer   string `json:"peer"`
	Base   string `json:"base"`
	Metric string `json:"metric"`
	stat.Estimate
}

// Skip says what was not measured and why.
type Skip struct {
	Case
	Peer   string `json:"peer"` // empty: every peer
	Reason string `json:"reason"`
}

// Peer is a contestant with the version measured.
type Peer struct {
	Name    string       `json:"name"`
	Kind    bench.Kind   `json:"kind"`
	Module  string       `json:"module"`
	Version string       `json:"version"`
	Traits  bench.Traits `json:"traits"`
}

// Document is what one run found out.
type Document struct {
	Schema      int                 `json:"schema"`
	Taken       time.Time           `json:"taken"`
	Seconds     float64             `json:"seconds"`
	Note        string              `json:"note"`
	Quick       bool                `json:"quick"` // fewer rounds, smaller sizes: not for judging
	Machine     device.Machine      `json:"machine"`
	FileSystems []device.FileSystem `json:"file_systems"`
	Peers       []Peer              `json:"peers"`
	Figures     []Figure            `json:"figures"`
	Ratios      []Ratio             `json:"ratios"`
	Skipped     []Skip              `json:"skipped"`
}

// Add records the rounds of one metric, to six figures. No rounds, no figure.
func (d *Document) Add(c Case, peer, metric string, measured []float64) {
	if len(measured) == 0 {
		return
	}
	rounds := make([]float64, len(measured))
	for i, v := range measured {
		rounds[i] = sixFigures(v)
	}
	d.Figures = append(d.Figures, Figure{
		Case: c, Peer: peer, Metric: metric, Unit: units[metric],
		Estimate: stat.Of(rounds), Rounds: rounds,
	})
}

// sixFigures drops digits that no measurement here has.
func sixFigures(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// Skip records that something was not measured.
func (d *Document) Skip(c Case, peer, reason string) {
	d.Skipped = append(d.Skipped, Skip{Case: c, Peer: peer, Reason: reason})
}

// Find returns a figure, or nil.
func (d *Document) Find(c Case, peer, metric string) *Figure {
	for i := range d.Figures {
		f := &d.Figures[i]
		if f.Case == c && f.Peer == peer && f.Metric == metric {
			return f
		}
	}
	return nil
}

// Cases returns every case that has figures, in the order they were measured.
func (d *Document) Cases() []Case {
	var cases []Case
	for _, f := range d.Figures {
		if !slices.Contains(cases, f.Case) {
			cases = append(cases, f.Case)
		}
	}
	return cases
}

// Compare computes the ratio of every figure to its case's floor.
func (d *Document) Compare() {
	d.Ratios = nil
	for _, f := range d.Figures {
		base := d.Find(f.Case, floors[f.Workload], f.Metric)
		if base == nil || base.Peer == f.Peer {
			continue
		}
		d.Ratios = append(d.Ratios, Ratio{
			Case: f.Case, Peer: f.Peer, Base: base.Peer, Metric: f.Metric,
			Estimate: stat.Ratio(f.Rounds, base.Rounds),
		})
	}
}

// floors names the raw loop each workload is measured against.
var floors = map[string]string{
	"W1": "raw prewritten", "W2": "raw prewritten", "W3": "raw leader", "W4": "raw prewritten",
	"W5": "raw grow", "W6": "raw prewritten", "W7": "raw page read", "W9": "raw prewritten",
	"W12": "raw prewritten",
}

// Best returns the rival with the best median of those that pass, or nil.
func (d *Document) Best(c Case, metric string, pass func(bench.Peer) bool) *Figure {
	var best *Figure
	for _, p := range d.Peers {
		if p.Kind != bench.Rival || !pass(bench.Peer{Name: p.Name, Kind: p.Kind, Traits: p.Traits}) {
			continue
		}
		f := d.Find(c, p.Name, metric)
		if f != nil && (best == nil || better(metric, f.Median, best.Median)) {
			best = f
		}
	}
	return best
}

// better reports whether a beats b.
func better(metric string, a, b float64) bool {
	if HigherIsBetter(metric) {
		return a > b
	}
	return a < b
}

// Merge takes the figures and skips of another run on top: what both measured
// is replaced.
func (d *Document) Merge(newer *Document) {
	d.Figures = slices.DeleteFunc(d.Figures, func(f Figure) bool {
		return newer.Find(f.Case, f.Peer, f.Metric) != nil
	})
	measured := newer.Cases()
	d.Skipped = slices.DeleteFunc(d.Skipped, func(s Skip) bool { return slices.Contains(measured, s.Case) })
	d.Figures = append(d.Figures, newer.Figures...)
	d.Skipped = append(d.Skipped, newer.Skipped...)
	for _, fsys := range newer.FileSystems {
		d.FileSystems = slices.DeleteFunc(d.FileSystems, func(f device.FileSystem) bool { return f.Name == fsys.Name })
	}
	d.FileSystems = append(d.FileSystems, newer.FileSystems...)
	d.Taken, d.Note, d.Machine, d.Peers = newer.Taken, newer.Note, newer.Machine, newer.Peers
	d.Quick = d.Quick || newer.Quick
	d.Seconds += newer.Seconds
	slices.SortStableFunc(d.Figures, func(a, b Figure) int {
		return cmp.Or(cmp.Compare(len(a.Workload), len(b.Workload)), cmp.Compare(a.Workload, b.Workload))
	})
	d.Compare()
}

// Read reads a document.
func Read(name string) (*Document, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("%s: schema %d, want %d", name, d.Schema, Schema)
	}
	return &d, nil
}

// roundsList is the one list of an indented document that stays on its line.
var roundsList = regexp.MustCompile(`"rounds": \[[^\]]*\]`)

// Write replaces the named file by the document, all of it or nothing.
func (d *Document) Write(name string) error {
	text, err := json.MarshalIndent(d, "", "\t")
	if err != nil {
		return err
	}
	text = roundsList.ReplaceAllFunc(text, func(list []byte) []byte { return bytes.Join(bytes.Fields(list), []byte(" ")) })
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	tmp := name + ".tmp"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}
