package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/pagelog"
)

// Bench says what durable commits cost on a disk of the user's, beside what the
// disk itself can do: a loop that writes and syncs into bytes written before.
// Both take turns, round by round, so that what slows the machine slows both,
// and a ratio is taken within its round.

func newBench(a *app) *cobra.Command {
	limit := span(10 * time.Second)
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "bench DIR",
		Short:   "Measure durable commits on a disk of yours",
		GroupID: groupLearn,
		Long: `Measure durable commits on the disk that holds DIR, beside the floor: a loop
that only writes and syncs, into a file whose bytes were written before.
Everything happens in a new directory within DIR, which is removed; it takes up
to 600 MiB.

Each line is one size of commit. The figures are medians over rounds in which
floor and log take turns. The last lines are commits of 256 bytes by 8 and 64
callers at once, beside the floor of one.

Let nothing else run meanwhile: a busy disk slows both, and not always alike.`,
		Example: `  tidemark bench /var/tmp
  tidemark bench /mnt/disk --time 1m --json`,
		Args: oneDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runBench(cmd.OutOrStdout(), args[0], time.Duration(limit), asJSON, a.anyFileSystem)
		},
	}
	cmd.Flags().Var(&limit, "time", "for how long, `DURATION` such as 10s or 2m; each line has three rounds at least")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the figures as one JSON object, and nothing else")
	return cmd
}

// benchCase is one line.
type benchCase struct {
	Name    string `json:"name"`
	Records int    `json:"records"` // of a commit
	Size    int    `json:"size"`    // of a record, in bytes
	Callers int    `json:"callers"`

	Floor  benchFigure `json:"floor"`
	Log    benchFigure `json:"log"`
	Ratio  float64     `json:"ratio"` // of the log's rate to the floor's
	Rounds int         `json:"rounds"`

	floor, log []benchRound
}

// benchFigure is a median over rounds.
type benchFigure struct {
	PerSecond float64 `json:"per_second"` // commits
	Median    float64 `json:"median_us"`  // microseconds of one commit
	P99       float64 `json:"p99_us"`
}

type benchRound struct{ perSecond, median, p99 float64 }

type benchResult struct {
	Seconds float64      `json:"seconds"`
	Cases   []*benchCase `json:"cases"`
}

func benchCases() []*benchCase {
	return []*benchCase{
		{Name: "256 B", Records: 1, Size: 256, Callers: 1},
		{Name: "4 KiB", Records: 1, Size: 4 << 10, Callers: 1},
		{Name: "64 KiB", Records: 1, Size: 64 << 10, Callers: 1},
		{Name: "16 x 256 B", Records: 16, Size: 256, Callers: 1},
		{Name: "256 B, 8 callers", Records: 1, Size: 256, Callers: 8},
		{Name: "256 B, 64 callers", Records: 1, Size: 256, Callers: 64},
	}
}

const (
	benchSlice  = 100 * time.Millisecond
	benchRounds = 3         // at least
	floorBytes  = 64 << 20  // of the floor's file, written over and over
	logBytes    = 256 << 20 // after which a log is replaced by a new one
)

func runBench(w io.Writer, in string, limit time.Duration, asJSON, anyFileSystem bool) error {
	dir, err := os.MkdirTemp(in, "tidemark-bench-")
	if err != nil {
		return err
	}
	b := &bencher{dir: dir, options: pagelog.Options{AllowAnyFileSystem: anyFileSystem}}
	var result *benchResult
	err = interruptible(noTrace, func(ctx context.Context) (err error) {
		result, err = b.run(ctx, limit)
		return errors.Join(err, b.close(), os.RemoveAll(dir))
	})
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(w).Encode(result)
	}
	return result.print(w)
}

// bencher is one run.
type bencher struct {
	dir     string
	options pagelog.Options
	floor   disk.File
	floorAt int64
	log     *pagelog.Log
	logs    int
	written int64
}

func (b *bencher) run(ctx context.Context, limit time.Duration) (*benchResult, error) {
	began := time.Now()
	if err := b.prepare(); err != nil {
		return nil, err
	}
	cases := benchCases()
	for round := 0; round < benchRounds || time.Since(began) < limit; round++ {
		for _, c := range cases {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := b.round(ctx, c); err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
		}
	}
	for _, c := range cases {
		c.settle()
	}
	return &benchResult{Seconds: time.Since(began).Seconds(), Cases: cases}, nil
}

// prepare makes the floor's file, of bytes that were written, and the first log.
func (b *bencher) prepare() error {
	dir, err := disk.OpenDir(b.dir)
	if err != nil {
		return err
	}
	b.floor, err = dir.Create("floor")
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < floorBytes; at += int64(len(zeros)) {
		if _, err := b.floor.WriteAt(zeros, at); err != nil {
			return err
		}
	}
	if err := b.floor.Sync(); err != nil {
		return err
	}
	return b.renew()
}

// renew replaces the log by an empty one.
func (b *bencher) renew() error {
	if b.log != nil {
		old := filepath.Join(b.dir, fmt.Sprintf("log%d", b.logs))
		if err := errors.Join(b.log.Close(), os.Remove(old)); err != nil {
			return err
		}
		b.log = nil
	}
	b.logs, b.written = b.logs+1, 0
	var err error
	b.log, err = pagelog.Create(filepath.Join(b.dir, fmt.Sprintf("log%d", b.logs)), pagelog.CreateOptions{}, b.options)
	return err
}

func (b *bencher) close() error {
	var err error
	if b.floor != nil {
		err = b.floor.Close()
	}
	if b.log != nil {
		err = errors.Join(err, b.log.Close())
	}
	return err
}

// round lets the floor and the log work for a slice of time each.
func (b *bencher) round(ctx context.Context, c *benchCase) error {
	if b.written > logBytes {
		if err := b.renew(); err != nil {
			return err
		}
	}
	block := make([]byte, c.Records*c.Size)
	for i := range block {
		block[i] = byte(i*7 + i>>8)
	}
	floor, err := benchTurn(1, func() func() error {
		return func() error {
			if b.floorAt+int64(len(block)) > floorBytes {
				b.floorAt = 0
			}
			at := b.floorAt
			b.floorAt += int64(len(block))
			if _, err := b.floor.WriteAt(block, at); err != nil {
				return err
			}
			return b.floor.Sync()
		}
	})
	if err != nil {
		return fmt.Errorf("the floor: %w", err)
	}
	log, err := benchTurn(c.Callers, func() func() error {
		var batch pagelog.Batch
		return func() error {
			batch.Reset()
			for at := 0; at < len(block); at += c.Size {
				batch.Append(block[at : at+c.Size])
			}
			_, err := b.log.Commit(ctx, &batch)
			return err
		}
	})
	if err != nil {
		return err
	}
	b.written += int64(log.perSecond * benchSlice.Seconds() * float64(len(block)))
	c.floor, c.log = append(c.floor, floor), append(c.log, log)
	return nil
}

// benchTurn has callers commit for a slice of time. Each gets its own function.
func benchTurn(callers int, caller func() func() error) (benchRound, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var took []float64
	var failed error
	began := time.Now()
	for range callers {
		commit := caller()
		wg.Go(func() {
			var own []float64
			var err error
			for last := time.Now(); err == nil && last.Sub(began) < benchSlice; {
				err = commit()
				now := time.Now()
				own = append(own, float64(now.Sub(last).Nanoseconds())/1e3)
				last = now
			}
			mu.Lock()
			defer mu.Unlock()
			took, failed = append(took, own...), errors.Join(failed, err)
		})
	}
	wg.Wait()
	elapsed := time.Since(began).Seconds()
	slices.Sort(took)
	return benchRound{float64(len(took)) / elapsed, took[len(took)/2], took[len(took)*99/100]}, failed
}

// settle takes the medians over the rounds.
func (c *benchCase) settle() {
	ratios := make([]float64, len(c.log))
	for i := range ratios {
		ratios[i] = c.log[i].perSecond / c.floor[i].perSecond
	}
	c.Ratio, c.Rounds = middle(ratios), len(ratios)
	c.Floor, c.Log = figureOf(c.floor), figureOf(c.log)
}

func figureOf(rounds []benchRound) benchFigure {
	of := func(value func(r benchRound) float64) float64 {
		all := make([]float64, len(rounds))
		for i, r := range rounds {
			all[i] = value(r)
		}
		return middle(all)
	}
	return benchFigure{
		of(func(r benchRound) float64 { return r.perSecond }),
		of(func(r benchRound) float64 { return r.median }),
		of(func(r benchRound) float64 { return r.p99 }),
	}
}

// middle returns the median; it sorts.
func middle[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// print shows the figures to a person.
func (r *benchResult) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(out, "commit of\tfloor/s\tlog/s\tof the floor\tfloor µs\tlog µs\tlog p99 µs\t")
	for _, c := range r.Cases {
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%.2f\t%.0f\t%.0f\t%.0f\t\n", c.Name, thousands(uint64(c.Floor.PerSecond)),
			thousands(uint64(c.Log.PerSecond)), c.Ratio, c.Floor.Median, c.Log.Median, c.Log.P99)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nMedians of %d rounds in %.1f seconds. The floor writes and syncs, and does nothing else.\n", r.Cases[0].Rounds, r.Seconds)
	return err
}
