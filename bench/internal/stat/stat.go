// Package stat turns rounds of measurements into medians with intervals.
package stat

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	resamples  = 4000 // of the bootstrap
	confidence = 0.95
	seed       = 1 // the same samples always give the same interval
)

// Estimate is a median with its 95 % bootstrap interval.
type Estimate struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Median returns the middle of v, 0 if v is empty. It does not change v.
func Median(v []float64) float64 {
	return middle(slices.Sorted(slices.Values(v)))
}

// middle is the median of sorted values.
func middle(v []float64) float64 {
	n := len(v)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

// Of estimates the median of v by the percentile bootstrap.
func Of(v []float64) Estimate {
	if len(v) == 0 {
		return Estimate{}
	}
	rng := rand.New(rand.NewPCG(seed, uint64(len(v))))
	medians := make([]float64, resamples)
	sample := make([]float64, len(v))
	for i := range medians {
		for j := range sample {
			sample[j] = v[rng.IntN(len(v))]
		}
		slices.Sort(sample)
		medians[i] = middle(sample)
	}
	slices.Sort(medians)
	const tail = (1 - confidence) / 2
	return Estimate{Median: Median(v), Low: at(medians, tail), High: at(medians, 1-tail)}
}

// Ratio estimates the median of a[i]/b[i]. The two of a pair were measured in
// the same round, so that what slowed one slowed the other. A pair whose
// divisor is 0 is left out, and so are rounds only one of them finished.
func Ratio(a, b []float64) Estimate {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return Of(ratios)
}

// at returns the value at fraction p of sorted values.
func at(sorted []float64, p float64) float64 {
	return sorted[int(p*float64(len(sorted)-1)+0.5)]
}

// Quantile returns the duration at fraction p of d, which it sorts.
func Quantile(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(p*float64(len(d)-1)+0.5)]
}
