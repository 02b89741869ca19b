package workload

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

// verifyWorkers is the number of cores W12 is measured on.
const verifyWorkers = 2

// runW12 measures checking every byte of a closed log.
func runW12(ctx context.Context, s *Setting) error {
	c := report.Case{Workload: "W12", Variant: "4 KiB", FileSystem: s.FileSystem}
	w := s.readable("4 KiB", 4<<10, 16)
	field, err := s.enter(c, func(p bench.Peer) bool { return p.Verify != nil })
	if err != nil {
		return err
	}
	if err := s.load(ctx, c, field, w); err != nil {
		return errors.Join(err, s.finish(c, field))
	}
	for _, x := range field {
		if x.store == nil {
			continue
		}
		if err := x.store.Close(); err != nil {
			s.drop(c, x, err)
		}
		x.store = nil
	}
	err = s.rounds(ctx, c, field, func(x *contestant) error {
		start := time.Now()
		err := x.peer.Verify(bench.Options{Dir: x.dir, RecordSize: w.recordSize, Capacity: w.bytes()}, verifyWorkers)
		if err == nil {
			x.add(report.Throughput, float64(w.bytes())/1e6/time.Since(start).Seconds())
		}
		return err
	})
	return errors.Join(err, s.finish(c, field))
}
