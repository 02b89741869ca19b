package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

const (
	openRecord = 4 << 10 // bytes
	openGroup  = 16
	// regrow is the part of a store added again before each further kill.
	regrow = 64
)

func runW8(ctx context.Context, s *Setting) error {
	var errs []error
	for _, size := range []struct {
		name  string
		bytes int64
	}{{"64 MiB", 64 << 20}, {"512 MiB", 512 << 20}, {"2 GiB", 2 << 30}} {
		errs = append(errs, s.opens(ctx, size.name, size.bytes/s.Shrink))
	}
	return errors.Join(errs...)
}

// Variants of W8 end in how the store was left.
const (
	afterKill  = ", killed"
	afterClose = ", closed"
)

// opens measures how long it takes to open a store whose process was killed,
// and one that was closed. Peers go one after the other here: together their
// stores are larger than the memory that is to keep them warm.
func (s *Setting) opens(ctx context.Context, name string, bytes int64) error {
	c := report.Case{Workload: "W8", Variant: name, FileSystem: s.FileSystem}
	field, err := s.enter(c, func(p bench.Peer) bool { return p.Traits.Reopens })
	if err != nil {
		return err
	}
	for _, x := range field {
		records := int(bytes / openRecord)
		added := 0
		err := s.rounds(ctx, c, []*contestant{x}, func(x *contestant) error {
			add := records
			if added > 0 {
				if added == records {
					x.used = 0 // filling the store is not held against it
				}
				add = max(openGroup, records/regrow/openGroup*openGroup)
			}
			added += add
			return s.openRound(ctx, x, add, added)
		})
		if err := errors.Join(err, os.RemoveAll(x.dir)); err != nil {
			return err
		}
		for _, left := range slices.Sorted(maps.Keys(x.series)) {
			c := report.Case{Workload: "W8", Variant: name + left, FileSystem: s.FileSystem}
			s.Document.Add(c, x.peer.Name, report.OpenTime, x.series[left])
		}
		settle(s.Dir)
	}
	return os.RemoveAll(s.caseDir(c))
}

// openRound lets a child add records and kills it while it goes on, then opens
// what it left, twice.
func (s *Setting) openRound(ctx context.Context, x *contestant, add, want int) error {
	o := bench.Options{Dir: x.dir, Mode: bench.Deferred, RecordSize: openRecord, Group: openGroup}
	child, err := s.start(ctx, task{Kind: "fill", Peer: x.peer.Name, Options: o, Records: add})
	if err != nil {
		return err
	}
	if err := child.kill(); err != nil {
		return err
	}
	settle(s.Dir)
	o.Mode = bench.Durable
	for _, left := range []string{afterKill, afterClose} {
		start := time.Now()
		store, err := x.peer.Open(o)
		if err != nil {
			return fmt.Errorf("open%s: %w", left, err)
		}
		got := store.Len()
		x.add(left, float64(time.Since(start))/float64(time.Millisecond))
		if err := store.Close(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
		if got < uint64(want) {
			return fmt.Errorf("open%s: %d records of %d", left, got, want)
		}
	}
	return nil
}
