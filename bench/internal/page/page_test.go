package page

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

func document() *report.Document {
	d := &report.Document{Peers: []report.Peer{
		{Name: "raw prewritten", Kind: bench.Floor},
		{Name: "faster", Kind: bench.Rival, Traits: bench.Traits{Sums: bench.SumsNone, Note: "does less"}},
		{Name: "slower", Kind: bench.Rival},
		{Name: bench.TidemarkName, Kind: bench.Subject},
	}}
	c := report.Case{Workload: "W1", Variant: "256 B", FileSystem: "native"}
	d.Add(c, "raw prewritten", report.Rate, []float64{10000, 10000, 10000})
	d.Add(c, "faster", report.Rate, []float64{9000, 9100, 9200})
	d.Add(c, "slower", report.Rate, []float64{100, 8600, 8600})
	d.Add(c, bench.TidemarkName, report.Rate, []float64{8000, 8000, 8000})
	d.Skip(report.Case{FileSystem: "xfs"}, "", "no tools")
	d.Compare()
	return d
}

// The page shows every peer, and names the loss that is certain and not the
// one that is noise.
func TestWrite(t *testing.T) {
	text := Write(document(), Titles{"W1": "commits"}, "plots")
	for _, want := range []string{
		"| **Tidemark** | 8,000 [8,000 to 8,000], 0.80 × |",
		"| *raw prewritten* | 10,000",
		"- W1 256 B on native, rate: faster 1.14 ×",
		"![W1 256 B on native](plots/w1-256-b-native.svg)",
		"- everything on xfs: no tools",
		"### Bars",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "; slower") {
		t.Error("a rival whose interval holds 1 is called ahead")
	}
}

func TestInsert(t *testing.T) {
	const before, after = "# Title\n", "\nend\n"
	once, err := Insert(before+begin+"old"+end+after, "new")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(once, "old") || !strings.HasPrefix(once, before) || !strings.HasSuffix(once, after) {
		t.Errorf("got %q", once)
	}
	if twice, err := Insert(once, "new"); err != nil || twice != once {
		t.Errorf("second time: %q, %v", twice, err)
	}
	for _, bad := range []string{"", begin, end + begin} {
		if _, err := Insert(bad, "new"); !errors.Is(err, ErrNoMarks) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.9512: "0.951", 999: "999", 1000: "1,000", 1234567: "1,234,567", -98765: "-98,765"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}
