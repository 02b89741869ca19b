package figure_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/figure"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

func document() *report.Document {
	d := &report.Document{Peers: []report.Peer{
		{Name: "raw prewritten", Kind: bench.Floor},
		{Name: "other", Kind: bench.Rival},
		{Name: bench.TidemarkName, Kind: bench.Subject},
	}}
	for i, p := range d.Peers {
		v := float64(100 * (i + 1))
		for c, metric := range map[report.Case]string{
			{Workload: "W1", Variant: "256 B", FileSystem: "native"}:             report.Rate,
			{Workload: "W6", Variant: "4 KiB", FileSystem: "native"}:             report.Throughput,
			{Workload: "W8", Variant: "2 GiB, killed", FileSystem: "native"}:     report.OpenTime,
			{Workload: "W10", Variant: "complete commits", FileSystem: "native"}: report.Delay,
		} {
			d.Add(c, p.Name, metric, []float64{v - 150, v, v + 10})
		}
	}
	return d
}

// Every picture is well-formed XML and names every peer.
func TestDrawAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plots")
	names, err := figure.DrawAll(document(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 4 {
		t.Fatalf("drew %v, want 4 pictures", names)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, peer := range []string{"raw prewritten", "other", "Tidemark"} {
			if !strings.Contains(string(text), peer) {
				t.Errorf("%s: no %s", name, peer)
			}
		}
		if err := wellFormed(string(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func wellFormed(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func TestFileName(t *testing.T) {
	for c, want := range map[report.Case]string{
		{Workload: "W4", Variant: "16 × 256 B", FileSystem: "ext4"}:      "w4-16-x-256-b-ext4.svg",
		{Workload: "W8", Variant: "2 GiB, killed", FileSystem: "native"}: "w8-2-gib-killed-native.svg",
	} {
		if got := figure.FileName(c); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
