// Command victim uses the engine as a host does, follows a script, and says on
// standard output what it offers and what is acknowledged, in the words that
// package oracle hears. It is made to be killed.
//
//	victim [flags] LOG SCRIPT
//
// The script is a letter for each step:
//
//	d  a durable commit            S  sync
//	c  a complete-only commit      K  a checkpoint with a blob
//	R  close and open again        w  say "waiting" and wait for a line
//
// A rejected commit is said and passed over. An uncertain one ends the script
// with exit code 4, after the log has shown that it is poisoned.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// Exit codes; those of the command line program where it has one.
const (
	exitCorrupt   = 1
	exitOther     = 2
	exitLocked    = 3
	exitUncertain = 4
	exitBroken    = 9 // the engine broke a rule while it ran
)

func main() {
	v := victim{in: bufio.NewReader(os.Stdin), tries: map[uint64]int{}}
	flag.IntVar(&v.try, "try", 0, "number of the first try at a revision")
	flag.IntVar(&v.size, "size", 300, "bytes of a commit, more or less")
	flag.IntVar(&v.lines, "lines", 2, "records of a commit")
	flag.BoolVar(&v.forever, "forever", false, "repeat the script")
	flag.BoolVar(&v.waitRejected, "wait-rejected", false, "after a rejection, wait for a line")
	flag.BoolVar(&v.options.AllowAnyFileSystem, "any", false, "accept user-space file systems")
	flag.Int64Var(&v.options.CheckpointEvery, "checkpoint", 0, "bytes between checkpoints")
	flag.Int64Var(&v.create.MaxSize, "max-size", 0, "bytes of the file")
	flag.IntVar(&v.create.PageSize, "page-size", 0, "bytes of a page")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(exitOther)
	}
	v.path = flag.Arg(0)
	err := v.run(flag.Arg(1))
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
	}
	os.Exit(code(err))
}

var errBroken = errors.New("the engine broke a rule")

func code(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errBroken):
		return exitBroken
	case errors.Is(err, pagelog.ErrLocked):
		return exitLocked
	case errors.Is(err, pagelog.ErrUncertain), errors.Is(err, pagelog.ErrPoisoned):
		return exitUncertain
	case errors.Is(err, pagelog.ErrCorrupt), errors.Is(err, pagelog.ErrDiverged), errors.Is(err, pagelog.ErrLostCommits):
		return exitCorrupt
	}
	return exitOther
}

type victim struct {
	path    string
	create  pagelog.CreateOptions
	options pagelog.Options
	try     int
	size    int
	lines   int
	forever bool

	waitRejected bool

	in    *bufio.Reader
	log   *pagelog.Log
	tries map[uint64]int // rejections at a revision
}

// say writes one line in one system call, so that a kill cuts between lines or
// leaves a line without its end.
func say(format string, args ...any) {
	if _, err := os.Stdout.WriteString(fmt.Sprintf(format, args...) + "\n"); err != nil {
		os.Exit(exitOther) // nobody listens any more
	}
}

func (v *victim) run(script string) error {
	if err := v.open(); err != nil {
		return err
	}
	for {
		for _, step := range script {
			if err := v.step(step); err != nil {
				return v.leave(err)
			}
		}
		if !v.forever {
			return v.close()
		}
	}
}

// leave closes the log after a step failed: a poisoned one says so again.
func (v *victim) leave(err error) error {
	if v.log == nil {
		return err
	}
	closed := v.log.Close()
	if errors.Is(err, pagelog.ErrUncertain) && !errors.Is(closed, pagelog.ErrPoisoned) && !errors.Is(closed, pagelog.ErrClosed) {
		return fmt.Errorf("%w: Close of a poisoned log says %v after %w", errBroken, closed, err)
	}
	return err
}

// open opens the log, and makes it if there is none. Opening makes durable what
// it finds.
func (v *victim) open() (err error) {
	v.log, err = pagelog.Open(v.path, v.options)
	if errors.Is(err, fs.ErrNotExist) {
		v.log, err = pagelog.Create(v.path, v.create, v.options)
	}
	if err != nil {
		return err
	}
	say("open %d", v.log.Head().Revision)
	return nil
}

// close closes the log: everything that was complete is then durable.
func (v *victim) close() error {
	head := v.log.Head().Revision
	if err := v.log.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	say("sync %d", head)
	return nil
}

func (v *victim) step(step rune) error {
	ctx := context.Background()
	head := v.log.Head().Revision
	switch step {
	case 'd', 'c':
		return v.commit(head+1, step == 'c')
	case 'S':
		if err := v.log.Sync(ctx); err != nil {
			return v.failed("sync", err)
		}
		say("sync %d", head)
	case 'K':
		if err := v.log.Checkpoint(ctx, head, []byte("state at "+strconv.FormatUint(head, 10))); err != nil {
			return v.failed("checkpoint", err)
		}
		say("sync %d", head)
	case 'R':
		if err := v.close(); err != nil {
			return err
		}
		return v.open()
	case 'w':
		return v.wait()
	default:
		return fmt.Errorf("no step %q", step)
	}
	return nil
}

// wait waits for a line.
func (v *victim) wait() error {
	say("waiting")
	_, err := v.in.ReadString('\n')
	return err
}

// failed passes over a rejection of a step that is not a commit.
func (v *victim) failed(what string, err error) error {
	if errors.Is(err, pagelog.ErrUncertain) || errors.Is(err, pagelog.ErrPoisoned) {
		return fmt.Errorf("%s: %w", what, err)
	}
	say("rejected %s: %v", what, err)
	return nil
}

func (v *victim) commit(revision uint64, completeOnly bool) error {
	a := oracle.Attempt{Revision: revision, Try: v.try + v.tries[revision]}
	var b pagelog.Batch
	b.CompleteOnly = completeOnly
	for _, text := range oracle.Texts(a, v.lines, v.size*int(1+revision%3)/2) {
		b.Append([]byte(text))
	}
	say("offer %d %d", a.Revision, a.Try)
	c, err := v.log.Commit(context.Background(), &b)
	switch {
	case errors.Is(err, pagelog.ErrUncertain):
		say("uncertain %d %d", a.Revision, a.Try)
		return errors.Join(fmt.Errorf("commit %v: %w", a, err), v.poisoned())
	case errors.Is(err, pagelog.ErrPoisoned):
		return fmt.Errorf("commit %v: %w", a, err)
	case err != nil:
		say("reject %d %d", a.Revision, a.Try)
		fmt.Fprintf(os.Stderr, "victim: %v rejected: %v\n", a, err)
		v.tries[revision]++
		if v.waitRejected {
			return v.wait()
		}
		return nil
	case c.Revision != revision:
		return fmt.Errorf("%w: commit %v became revision %d", errBroken, a, c.Revision)
	}
	kind := "durable"
	if completeOnly {
		kind = "complete"
	}
	say("ack %d %d %s", a.Revision, a.Try, kind)
	return nil
}

// poisoned fails unless the log refuses everything from here on.
func (v *victim) poisoned() error {
	var b pagelog.Batch
	b.Append([]byte("after the poison"))
	if _, err := v.log.Commit(context.Background(), &b); !errors.Is(err, pagelog.ErrPoisoned) {
		return fmt.Errorf("%w: a commit after an uncertain one says %v", errBroken, err)
	}
	if err := v.log.Sync(context.Background()); !errors.Is(err, pagelog.ErrPoisoned) {
		return fmt.Errorf("%w: a sync after an uncertain commit says %v", errBroken, err)
	}
	return nil
}
