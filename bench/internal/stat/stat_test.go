package stat_test

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := stat.Median(c.in); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.in, got, c.want)
		}
	}
}

func TestOf_IntervalHoldsMedian(t *testing.T) {
	v := []float64{10, 11, 9, 10, 12, 30, 10, 11, 9}
	e := stat.Of(v)
	if e.Median != 10 {
		t.Errorf("median %v, want 10", e.Median)
	}
	if e.Low < 9 || e.Low > 10 || e.High < 10 || e.High > 12 {
		t.Errorf("interval %v to %v: one outlier must not widen it", e.Low, e.High)
	}
	if again := stat.Of(v); again != e {
		t.Errorf("not repeatable: %v then %v", e, again)
	}
}

func TestOf_OneSample(t *testing.T) {
	if got, want := stat.Of([]float64{7}), (stat.Estimate{Median: 7, Low: 7, High: 7}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A machine that slows down hits both peers of a round: their ratio holds.
func TestRatio_PairsRounds(t *testing.T) {
	a := []float64{100, 50, 25, 100, 10}
	b := []float64{50, 25, 12.5, 50, 5}
	if got, want := stat.Ratio(a, b), (stat.Estimate{Median: 2, Low: 2, High: 2}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRatio_SkipsZeroDivisor(t *testing.T) {
	if got := stat.Ratio([]float64{1, 4}, []float64{0, 2}); got.Median != 2 {
		t.Errorf("got %v, want 2", got.Median)
	}
}

func TestQuantile(t *testing.T) {
	var d []time.Duration
	for i := 100; i >= 0; i-- {
		d = append(d, time.Duration(i))
	}
	for p, want := range map[float64]time.Duration{0: 0, 0.5: 50, 0.99: 99, 1: 100} {
		if got := stat.Quantile(d, p); got != want {
			t.Errorf("Quantile(%v) = %d, want %d", p, got, want)
		}
	}
	if got := stat.Quantile(nil, 0.5); got != 0 {
		t.Errorf("Quantile(nil) = %d, want 0", got)
	}
}
