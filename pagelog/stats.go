package pagelog

import "time"

// Stats counts what a Log did since it was opened.
type Stats struct {
	Commits  uint64    // tickets written, syncs included
	Writes   uint64    // writes of groups
	Bytes    int64     // bytes of groups written
	Syncs    uint64    // syncs that returned nil
	Slots    uint64    // slots written after the opening one
	Latency  Histogram // of syncs
	Recovery Report
}

// Histogram counts durations in buckets whose upper bounds double from 1 µs:
// bucket 0 holds what took up to 1 µs, the last everything longer.
type Histogram [32]uint64

func (h *Histogram) add(d time.Duration) {
	i := 0
	for bound := time.Microsecond; d > bound && i < len(h)-1; bound *= 2 {
		i++
	}
	h[i]++
}

// Quantile returns an upper bound of the q-th quantile, 0 if nothing was
// counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	var total, seen uint64
	for _, n := range h {
		total += n
	}
	for i, n := range h {
		seen += n
		if total > 0 && float64(seen) >= q*float64(total) {
			return time.Microsecond << i
		}
	}
	return 0
}

// Stats returns what the log did so far.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

func (s *Stats) wrote(bytes int64, tickets int) {
	s.Writes++
	s.Bytes += bytes
	s.Commits += uint64(tickets)
}

func (s *Stats) begin() time.Time { return time.Now() }

func (s *Stats) synced(began time.Time) {
	s.Syncs++
	s.Latency.add(time.Since(began))
}
