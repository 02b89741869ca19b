package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/report"
	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

const (
	followRecord = 256 // bytes
	followCount  = 250 // commits per round
	// followGap lets the follower run out of records between commits.
	followGap = time.Millisecond
)

func runW10(ctx context.Context, s *Setting) error {
	return errors.Join(
		s.follows(ctx, "complete commits", bench.Deferred),
		s.follows(ctx, "durable commits", bench.Durable))
}

// follows measures how long after its acknowledgement a commit reaches a
// follower in another process. A follower of complete commits may be early.
func (s *Setting) follows(ctx context.Context, variant string, mode bench.Mode) error {
	c := report.Case{Workload: "W10", Variant: variant, FileSystem: s.FileSystem}
	field, err := s.enter(c, func(p bench.Peer) bool {
		return p.Follow != nil && (mode == bench.Deferred || p.Kind == bench.Subject)
	})
	if err != nil {
		return err
	}
	err = s.rounds(ctx, c, field, func(x *contestant) error { return s.followRound(ctx, x, mode) })
	return errors.Join(err, s.finish(c, field))
}

func (s *Setting) followRound(ctx context.Context, x *contestant, mode bench.Mode) (err error) {
	if err := remake(x.dir); err != nil {
		return err
	}
	o := bench.Options{Dir: x.dir, Mode: bench.Durable, RecordSize: followRecord, Capacity: followCount * followRecord}
	store, err := x.peer.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	one := [][]byte{make([]byte, followRecord)}
	bench.Record(one[0], followCount+1) // the follower answers to it, no more
	if err := store.Commit(one); err != nil {
		return err
	}
	o.Mode = mode
	child, err := s.start(ctx, task{Kind: "follow", Peer: x.peer.Name, Options: o, Records: followCount})
	if err != nil {
		return err
	}
	acknowledged := make([]int64, followCount)
	for i := range acknowledged {
		time.Sleep(followGap)
		bench.Record(one[0], uint64(i+1))
		if err := store.Commit(one); err != nil {
			return errors.Join(err, child.kill())
		}
		acknowledged[i] = monotonic()
	}
	delays, err := child.delays(acknowledged)
	if err != nil {
		return err
	}
	x.add(report.Delay, micros(stat.Quantile(delays, 0.50)))
	x.add(report.DelayP99, micros(stat.Quantile(delays, 0.99)))
	return nil
}

// delays reads from a following child when it saw each record. A durable
// follower may wait for later proof; the commits come to an end, so it must
// not wait for ever.
func (c *child) delays(acknowledged []int64) ([]time.Duration, error) {
	timer := time.AfterFunc(followPatience, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	var delays []time.Duration
	var err error
	for i := 0; i < len(acknowledged) && c.lines.Scan() && err == nil; i++ {
		var seen int64
		seen, err = strconv.ParseInt(c.lines.Text(), 10, 64)
		delays = append(delays, time.Duration(seen-acknowledged[i]))
	}
	err = errors.Join(err, c.cmd.Wait())
	if err == nil && len(delays) < len(acknowledged) {
		err = fmt.Errorf("follower saw %d commits of %d", len(delays), len(acknowledged))
	}
	return delays, err
}

// followPatience is how long a follower may take to see the last commit.
const followPatience = 10 * time.Second
