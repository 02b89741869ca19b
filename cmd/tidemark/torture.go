package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// Torture is the demo's promises without the show: on a directory of the
// user's, for as long as the user likes, with a count of everything at the end.
// torture_acts.go has what is done to the logs.

func newTorture(a *app) *cobra.Command {
	limit := span(time.Minute)
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "torture DIR",
		Short:   "Try the promises on a disk of yours, for as long as you like",
		GroupID: groupLearn,
		Long: `Try what a log promises on the disk that holds DIR, for as long as you like, and
count. Everything happens in a new directory within DIR, which is removed.

  kill   a child process appends records of many sizes in commits of many
         sizes and is killed with SIGKILL in mid-write; the log is opened
         again and all of it compared with what was handed over
  flip   one bit of a copy is flipped; verify must find it, and what reads
         before it must be what was written
  cut    a copy is cut off anywhere; it is refused, or has every commit that
         its slots call durable
  full   a child runs into a limit of the size of its files, which is like a
         full disk without filling one; what it acknowledged stays, and the
         log goes on once there is room

A process that is killed leaves the page cache alive, so this says nothing about
the loss of power: whether the disk keeps what it confirmed only a power cut can
say.

It exits with 1 if any promise is broken, and then keeps the directory.`,
		Example: `  tidemark torture /var/tmp
  tidemark torture /mnt/disk --time 1h --json`,
		Args: oneDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTorture(cmd.OutOrStdout(), args[0], time.Duration(limit), asJSON, a.anyFileSystem)
		},
	}
	cmd.Flags().Var(&limit, "time", "for how long, `DURATION` such as 90s or 2h; each act is done once at least")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the counts as one JSON object, and nothing else")
	return cmd
}

// oneDirectory is the operand of torture and bench.
func oneDirectory(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("DIR is missing: name a directory on the disk to try")
	case 1:
		return nil
	}
	return usagef("one DIR at a time: %q is one too many", args[1])
}

// tortureCounts is what was done.
type tortureCounts struct {
	Seconds      float64 `json:"seconds"`
	Kills        uint64  `json:"kills"`
	Acknowledged uint64  `json:"acknowledged"`    // commits, each looked for after every later kill
	Beyond       uint64  `json:"complete_beyond"` // commits that were whole and not acknowledged yet
	Lost         uint64  `json:"lost"`            // acknowledged commits that were gone
	Compared     uint64  `json:"bytes_compared"`
	Flips        uint64  `json:"flips"`
	FlipsFound   uint64  `json:"flips_found"`
	Cuts         uint64  `json:"cuts"`
	CutsRefused  uint64  `json:"cuts_refused"`
	Full         uint64  `json:"full"`
	Skipped      string  `json:"skipped"` // what could not be tried, and why; empty: nothing
	Violation    string  `json:"violation"`
	Kept         string  `json:"kept"` // directory, after a violation
}

func runTorture(w io.Writer, in string, limit time.Duration, asJSON, anyFileSystem bool) error {
	dir, err := os.MkdirTemp(in, "tidemark-torture-")
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	t := &torture{
		dir: dir, program: program, began: time.Now(), limit: limit, anyFileSystem: anyFileSystem,
		rng: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)),
	}
	err = interruptible(noTrace, func(ctx context.Context) error {
		err := t.run(ctx)
		t.counts.Seconds = time.Since(t.began).Seconds()
		if errors.Is(err, errBroken) {
			t.counts.Violation, t.counts.Kept = err.Error(), dir
			return err
		}
		return errors.Join(err, os.RemoveAll(dir))
	})
	var stopped *interruptedError
	if errors.As(err, &stopped) {
		return err
	}
	if asJSON {
		return errors.Join(err, json.NewEncoder(w).Encode(t.counts))
	}
	return errors.Join(err, t.counts.print(w))
}

// print shows the counts to a person.
func (c *tortureCounts) print(w io.Writer) error {
	verdict := "Every promise held"
	if c.Violation != "" {
		verdict = "A promise was BROKEN; the logs are in " + c.Kept
	}
	_, err := fmt.Fprintf(w, `%s, in %.1f seconds:
  kill   %s times; %s commits were acknowledged, %d of them lost; %s more
         were whole when the writer died; %s compared
  flip   %s bits, %s found
  cut    %s copies, %s refused, the others with every commit they prove
  full   %s times
`, verdict, c.Seconds, thousands(c.Kills), thousands(c.Acknowledged), c.Lost, thousands(c.Beyond),
		bytesText(int64(c.Compared)), thousands(c.Flips), thousands(c.FlipsFound),
		thousands(c.Cuts), thousands(c.CutsRefused), thousands(c.Full))
	if c.Skipped != "" {
		_, more := fmt.Fprintf(w, "  skipped: %s\n", c.Skipped)
		err = errors.Join(err, more)
	}
	return err
}

// torture is one run.
type torture struct {
	dir           string
	program       string // this program, for child processes
	anyFileSystem bool
	began         time.Time
	limit         time.Duration
	rng           *rand.Rand
	counts        tortureCounts
	log           *torturedLog
}

// flipsPerRound and cutsPerRound are how often a copy is damaged between kills.
const (
	killsPerRound = 3
	flipsPerRound = 16
	cutsPerRound  = 8
	maxTortured   = 2 << 20 // bytes; then a new log is begun
)

// noTrace is told when a signal ended what works in a directory of its own.
const noTrace = "its directory was removed"

func (t *torture) run(ctx context.Context) error {
	for round := 0; round == 0 || time.Since(t.began) < t.limit; round++ {
		err := t.round(round)
		if ctx.Err() != nil {
			return ctx.Err() // the signal may have ended child processes, too: what was seen then means nothing
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// round tortures one log for a while.
func (t *torture) round(n int) error {
	if t.log == nil || t.log.size() > maxTortured {
		t.log = &torturedLog{t: t, path: filepath.Join(t.dir, fmt.Sprintf("%d.log", n)), seed: t.rng.Uint64()}
	}
	for range killsPerRound {
		if err := t.log.kill(); err != nil {
			return err
		}
	}
	if err := t.log.full(); err != nil {
		return err
	}
	if err := t.log.damage(); err != nil {
		return err
	}
	if t.log.size() > maxTortured {
		path := t.log.path
		t.log = nil // the next round begins a new one
		return os.Remove(path)
	}
	return nil
}

// broken is the error of a promise that did not hold.
func (l *torturedLog) broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s (%s)", errBroken, fmt.Sprintf(format, args...), l.path)
}
