// Package figure draws results: one picture per case, each peer a point with
// its interval, floors grey.
package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

// picture is how the figures of a workload are shown.
type picture struct {
	title string
	log   bool // a logarithmic axis
}

// pictures says what is drawn of each workload.
var pictures = map[string]picture{
	"W1":  {"Durable commits, one caller", false},
	"W2":  {"Durable commits, one caller", false},
	"W3":  {"Durable commits of 256 B, concurrent callers", true},
	"W4":  {"Durable groups, one caller", false},
	"W5":  {"Append, one sync at the end", false},
	"W6":  {"Replay", true},
	"W7":  {"Random read", true},
	"W8":  {"Open", true},
	"W9":  {"Device bytes per durable commit", false},
	"W10": {"Acknowledgement to follower", false},
	"W11": {"Commits spread over many logs", false},
	"W12": {"Verification on two cores", false},
}

// Sizes of a picture.
const (
	width     = 17 * vg.Centimeter
	rowHeight = 0.62 * vg.Centimeter
	margins   = 3 * vg.Centimeter // title and axis
	padding   = 0.3 * vg.Centimeter
)

// Colours of the three sides.
var colours = map[bench.Kind]color.Color{
	bench.Floor:   color.RGBA{R: 0x80, G: 0x80, B: 0x80, A: 0xff},
	bench.Rival:   color.RGBA{R: 0x2c, G: 0x6f, B: 0xad, A: 0xff},
	bench.Subject: color.RGBA{R: 0xd9, G: 0x5f, B: 0x02, A: 0xff},
}

// DrawAll writes an SVG for every case of a document into dir and returns
// their names.
func DrawAll(d *report.Document, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range d.Cases() {
		rows := rowsOf(d, c)
		if len(rows) == 0 {
			continue
		}
		name := FileName(c)
		if err := drawFile(c, rows, filepath.Join(dir, name)); err != nil {
			return names, fmt.Errorf("%s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// FileName is the name of a case's picture.
func FileName(c report.Case) string {
	plain := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	words := strings.ToLower(strings.ReplaceAll(c.Variant, "×", "x"))
	words = strings.ReplaceAll(strings.ReplaceAll(words, ",", ""), " ", "-")
	return strings.ToLower(c.Workload) + "-" + strings.Map(plain, words) + "-" + c.FileSystem + ".svg"
}

// row is a peer in a picture.
type row struct {
	report.Figure
	kind bench.Kind
}

// rowsOf returns the figures of a case that its picture shows, best last, so
// that it ends up on top.
func rowsOf(d *report.Document, c report.Case) []row {
	var rows []row
	for _, p := range d.Peers {
		f := d.Find(c, p.Name, report.Headline(c.Workload))
		if f != nil {
			rows = append(rows, row{*f, p.Kind})
		}
	}
	higher := report.HigherIsBetter(report.Headline(c.Workload))
	slices.SortStableFunc(rows, func(a, b row) int {
		if higher {
			return cmp.Compare(a.Median, b.Median)
		}
		return cmp.Compare(b.Median, a.Median)
	})
	return rows
}

func drawFile(c report.Case, rows []row, name string) error {
	p, err := chart(c, rows)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(width, margins+rowHeight*vg.Length(len(rows)))
	p.Draw(draw.Crop(draw.New(canvas), padding, -padding, padding, -padding))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		_ = f.Close() // the first error is the one to report
		return err
	}
	return f.Close()
}

// chart puts the rows on a plot.
func chart(c report.Case, rows []row) (*plot.Plot, error) {
	pic := pictures[c.Workload]
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s · %s (%s, %s)", c.Workload, pic.title, c.Variant, c.FileSystem)
	p.X.Label.Text = axis(rows[0].Figure)
	axisLimits(p, rows, pic.log)
	p.Y.Min, p.Y.Max = -0.6, float64(len(rows))-0.4
	ticks := make(plot.ConstantTicks, len(rows))
	for i, r := range rows {
		ticks[i] = plot.Tick{Value: float64(i), Label: fmt.Sprintf("%s  %s", r.Peer, short(r.Median))}
	}
	p.Y.Tick.Marker = ticks
	p.Y.Tick.Length = 0
	grid := plotter.NewGrid()
	grid.Horizontal.Color = nil
	p.Add(grid)
	for i, r := range rows {
		if err := addRow(p, r, float64(i)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// axis says what the numbers are and which way is better.
func axis(f report.Figure) string {
	direction := "lower is better"
	if report.HigherIsBetter(f.Metric) {
		direction = "higher is better"
	}
	return fmt.Sprintf("%s: median with 95 %% interval, %s", f.Unit, direction)
}

// axisLimits makes room for every interval. A linear axis begins at zero.
func axisLimits(p *plot.Plot, rows []row, log bool) {
	low, high := rows[0].Low, rows[0].High
	for _, r := range rows {
		low, high = min(low, r.Low), max(high, r.High)
	}
	if log && low > 0 {
		p.X.Scale = plot.LogScale{}
		p.X.Tick.Marker = plot.LogTicks{Prec: -1}
		p.X.Min, p.X.Max = low/1.3, high*1.3
		return
	}
	p.X.Min, p.X.Max = min(0, low), max(high*1.05, 1)
}

func addRow(p *plot.Plot, r row, y float64) error {
	at := plotter.XYs{{X: r.Median, Y: y}}
	point, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	point.Color = colours[r.kind]
	point.Shape = draw.CircleGlyph{}
	point.Radius = vg.Points(3.5)
	interval, err := plotter.NewXErrorBars(struct {
		plotter.XYs
		plotter.XErrors
	}{at, plotter.XErrors{{Low: r.Low - r.Median, High: r.High - r.Median}}})
	if err != nil {
		return err
	}
	interval.Color = colours[r.kind]
	interval.Width = vg.Points(1.5)
	p.Add(interval, point)
	return nil
}

// short writes a number with three figures.
func short(v float64) string {
	switch {
	case v >= 1e6 || v <= -1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e4 || v <= -1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	case v >= 1000 || v <= -1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
