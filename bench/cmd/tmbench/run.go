package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/device"
	"github.com/tidemark-log/tidemark/bench/internal/report"
	"github.com/tidemark-log/tidemark/bench/internal/workload"
)

// runFlags are the flags of the run command.
type runFlags struct {
	dir       string
	out       string
	workloads string
	peers     string
	fs        string
	rounds    int
	slice     time.Duration
	quick     bool
	merge     bool
	note      string
	profile   string
}

const (
	fullRounds  = 9
	fullSlice   = 400 * time.Millisecond
	fullBudget  = 20 * time.Second
	fullLoop    = 12 << 30 // bytes of a loop file system
	quickRounds = 5
	quickSlice  = 100 * time.Millisecond
	quickBudget = time.Second
	quickShrink = 16 // of sizes
	quickLoop   = 3 << 30
)

func runCommand(ctx context.Context, args []string, _ io.Writer) error {
	f := runFlags{}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.StringVar(&f.dir, "dir", "bench-data", "`directory` to measure in; made, and removed afterwards")
	flags.StringVar(&f.out, "out", resultsFile, "`file` for the results")
	flags.StringVar(&f.workloads, "w", "", "only these `workloads`, such as W1,W4")
	flags.StringVar(&f.peers, "peers", "", "only these `peers`, such as \"raw prewritten,etcd wal\"")
	flags.StringVar(&f.fs, "fs", "native,ext4,xfs", "`file systems`: the directory's own and loop devices")
	flags.IntVar(&f.rounds, "rounds", 0, "rounds per case; 0 means 9, or 5 if quick")
	flags.DurationVar(&f.slice, "slice", 0, "time per peer and round; 0 means 400ms, or 100ms if quick")
	flags.BoolVar(&f.quick, "quick", false, "a first look in minutes: few rounds, small sizes")
	flags.BoolVar(&f.merge, "merge", false, "keep figures in the results file that are not measured again")
	flags.StringVar(&f.note, "note", "", "`text` to keep with the results")
	flags.StringVar(&f.profile, "cpuprofile", "", "`file` for a CPU profile; choose one peer and workload")
	if err := parse(flags, args); err != nil {
		return err
	}
	if f.profile != "" {
		out, err := os.Create(f.profile)
		if err != nil {
			return err
		}
		defer out.Close()
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return f.run(ctx)
}

func (f runFlags) run(ctx context.Context) error {
	peers, err := pick(bench.Peers(), f.peers, func(p bench.Peer) string { return p.Name })
	if err != nil {
		return err
	}
	workloads, err := pick(workload.All(), f.workloads, func(w workload.Workload) string { return w.Name })
	if err != nil {
		return err
	}
	if _, err := os.Stat(f.dir); err == nil {
		return fmt.Errorf("%s exists; it would be removed afterwards", f.dir)
	}
	start := time.Now()
	doc := &report.Document{
		Schema: report.Schema, Taken: start.UTC().Truncate(time.Second), Note: f.note, Quick: f.quick,
		Machine: device.ThisMachine(), Peers: describe(peers),
	}
	err = f.measure(ctx, doc, peers, workloads)
	doc.Seconds = time.Since(start).Round(time.Second).Seconds()
	doc.Compare()
	if len(doc.Figures) == 0 {
		return errors.Join(err, errors.New("nothing measured"))
	}
	return errors.Join(err, f.write(doc))
}

func (f runFlags) write(doc *report.Document) error {
	if f.merge {
		older, err := report.Read(f.out)
		switch {
		case err == nil:
			older.Merge(doc)
			doc = older
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	return doc.Write(f.out)
}

// measure runs the workloads on each file system.
func (f runFlags) measure(ctx context.Context, doc *report.Document, peers []bench.Peer, workloads []workload.Workload) error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(f.dir)
	for name := range strings.SplitSeq(f.fs, ",") {
		s, err := f.setting(doc, peers)
		if err != nil {
			return err
		}
		err = f.onFileSystem(name, s, func() error {
			return runAll(ctx, s, workloads)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f runFlags) setting(doc *report.Document, peers []bench.Peer) (*workload.Setting, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &workload.Setting{
		Peers: peers, Rounds: fullRounds, Slice: fullSlice, Budget: fullBudget, Shrink: 1,
		Document: doc, Log: logf, Self: self,
	}
	if f.quick {
		s.Rounds, s.Slice, s.Budget, s.Shrink = quickRounds, quickSlice, quickBudget, quickShrink
	}
	if f.rounds > 0 {
		s.Rounds = f.rounds
	}
	if f.slice > 0 {
		s.Slice = f.slice
	}
	return s, nil
}

// onFileSystem prepares a file system for s and calls run. One this machine
// cannot make is skipped, with the reason in the results.
func (f runFlags) onFileSystem(name string, s *workload.Setting, run func() error) (err error) {
	s.Dir, s.FileSystem = filepath.Join(f.dir, "stores"), name
	if name != "native" {
		size := int64(fullLoop)
		if f.quick {
			size = quickLoop
		}
		loop, err := device.MountLoop(f.dir, name, size)
		if err != nil {
			logf("skipped: %v", err)
			s.Document.Skip(report.Case{FileSystem: name}, "", err.Error())
			return nil
		}
		defer func() { err = errors.Join(err, loop.Close()) }()
		s.Dir = filepath.Join(loop.Dir, "stores")
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	fsys, counter, err := device.Under(s.Dir)
	if err != nil {
		return err
	}
	fsys.Name, s.Counter = name, counter
	s.Document.FileSystems = append(s.Document.FileSystems, fsys)
	return errors.Join(run(), os.RemoveAll(s.Dir))
}

func runAll(ctx context.Context, s *workload.Setting, workloads []workload.Workload) error {
	for _, w := range workloads {
		if s.FileSystem != "native" && !w.Loop {
			continue
		}
		start := time.Now()
		logf("%s on %s: %s", w.Name, s.FileSystem, w.Title)
		if err := w.Run(ctx, s); err != nil {
			return fmt.Errorf("%s on %s: %w", w.Name, s.FileSystem, err)
		}
		logf("%s on %s took %s", w.Name, s.FileSystem, time.Since(start).Round(time.Second))
	}
	return nil
}

// pick returns those of all whose names are in a comma-separated list, or all
// if the list is empty.
func pick[T any](all []T, list string, name func(T) string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	var picked []T
	for want := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(t T) bool { return name(t) == want })
		if i < 0 {
			return nil, fmt.Errorf("no %q; see tmbench list", want)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// describe adds to each peer the version that is linked into this program.
func describe(peers []bench.Peer) []report.Peer {
	versions := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			versions[m.Path] = m.Version
		}
	}
	versions[tidemarkModule] = "this tree" + revision()
	var all []report.Peer
	for _, p := range peers {
		all = append(all, report.Peer{
			Name: p.Name, Kind: p.Kind, Module: p.Module, Version: versions[p.Module], Traits: p.Traits,
		})
	}
	return all
}

// tidemarkModule is the product, which is measured as it stands beside bench.
const tidemarkModule = "github.com/tidemark-log/tidemark"

// revision returns " at" and the commit checked out, or nothing outside a
// repository.
func revision() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	return " at " + strings.TrimSpace(string(out))
}

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
