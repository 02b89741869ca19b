package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/tidemark-log/tidemark/pagelog"
)

// torturedLog is a log and all that is known of it. What is handed to it is a
// function of its seed and of the number of the line, so that nothing has to be
// remembered but how many lines each commit took.
type torturedLog struct {
	t      *torture
	path   string
	seed   uint64
	ends   []int  // ends[i] is how many lines the first i+1 commits hold
	acked  uint64 // revision of the last commit acknowledged
	closed bool   // it was closed in peace
}

// lines returns how many lines the log holds.
func (l *torturedLog) lines() int {
	if len(l.ends) == 0 {
		return 0
	}
	return l.ends[len(l.ends)-1]
}

// line returns what line n holds: its number, and up to a few kilobytes more.
func (l *torturedLog) line(n int) []byte {
	rng := rand.New(rand.NewPCG(l.seed, uint64(n)))
	b := fmt.Appendf(nil, "line %d %016x ", n, rng.Uint64())
	size := rng.IntN(60)
	if rng.IntN(16) == 0 {
		size = rng.IntN(6000)
	}
	for range size {
		b = append(b, byte('0'+rng.IntN(75)))
	}
	return b
}

func (l *torturedLog) size() int64 {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// args are the command line of a writer.
func (l *torturedLog) args(group int) []string {
	args := []string{"append", l.path, "--ack", "--group", strconv.Itoa(group)}
	if l.t.anyFileSystem {
		args = append(args, "--any-file-system")
	}
	return args
}

// feed hands lines from the end of the log on to a child until it is gone.
func (l *torturedLog) feed(c *child, from int) {
	for {
		var b bytes.Buffer
		for range 32 {
			b.Write(l.line(from))
			b.WriteByte('\n')
			from++
		}
		if _, err := c.in.Write(b.Bytes()); err != nil {
			return // the child was killed in the middle of it
		}
	}
}

// kill lets a child append behind the head, kills it after some
// acknowledgements, and looks at what is there.
func (l *torturedLog) kill() error {
	group := 1 + l.t.rng.IntN(12)
	c, err := startChild(l.t.program, l.args(group)...)
	if err != nil {
		return err
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		l.feed(c, l.lines())
	}()
	head := uint64(len(l.ends))
	last, err := c.acks(head, head+1+uint64(l.t.rng.IntN(60)), demoLimit)
	if err == nil {
		err = c.kill()
	}
	if err != nil {
		gone := c.giveUp()
		return errors.Join(l.early(c, err), gone)
	}
	last, err = c.rest(last)
	<-fed
	if err != nil {
		return err
	}
	l.t.counts.Kills++
	return l.reopen(last, group)
}

// early is the error of a child that ended before it was killed. A disk that is
// really full is no broken promise.
func (l *torturedLog) early(c *child, err error) error {
	switch {
	case errors.Is(err, errBroken):
		return err
	case c.cmd.ProcessState != nil && c.cmd.ProcessState.ExitCode() == exitRejected:
		return fmt.Errorf("%w: %w", errRejected, err)
	}
	return l.broken("%v", err)
}

// reopen opens the log as the next writer would and compares all of it: of the
// commits of group lines that were handed over, those up to acked must be there.
func (l *torturedLog) reopen(acked uint64, group int) error {
	log, err := pagelog.Open(l.path, pagelog.Options{AllowAnyFileSystem: l.t.anyFileSystem})
	if err != nil {
		return l.broken("the log does not open again: %v", err)
	}
	before := uint64(len(l.ends))
	l.t.counts.Acknowledged += acked - min(acked, before)
	found, err := l.compare(log.Reader, group)
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	l.closed = true
	if found < max(acked, l.acked) {
		l.t.counts.Lost += max(acked, l.acked) - found
		return l.broken("%d commits were acknowledged, %d are there", max(acked, l.acked), found)
	}
	l.t.counts.Beyond += found - max(acked, before)
	l.acked = found // opening made it durable
	return nil
}

// compare reads the log and holds every commit against what was handed over.
// Commits behind those that are known have group lines.
func (l *torturedLog) compare(r *pagelog.Reader, group int) (found uint64, err error) {
	n := 0
	for g, err := range r.Commits(0) {
		if err != nil {
			return found, l.broken("commit %d does not read: %v", found+1, err)
		}
		if int(found) == len(l.ends) {
			l.ends = append(l.ends, l.lines()+group)
		}
		end := l.ends[found]
		for record, err := range g.Records() {
			if err != nil {
				return found, l.broken("commit %d does not read: %v", found+1, err)
			}
			if n >= end || !bytes.Equal(record.Data, l.line(n)) {
				return found, l.broken("line %d of commit %d is not what was handed over: %.60q", n, found+1, record.Data)
			}
			l.t.counts.Compared += uint64(len(record.Data))
			n++
		}
		if n != end || g.Revision != found+1 {
			return found, l.broken("commit %d holds %d of its lines as revision %d", found+1, n, g.Revision)
		}
		found++
	}
	return found, nil
}

// full lets a child run into a limit of the size of its files, and then gives
// the log room again.
func (l *torturedLog) full() error {
	shell, err := exec.LookPath("sh")
	if runtime.GOOS == "windows" || err != nil {
		l.t.counts.Skipped = "full: this system has no shell that limits the size of files"
		return nil
	}
	// In units of 512 bytes or of 1024, as the shell likes it; both are more
	// than the log has, so that it runs into it in time.
	blocks := l.size()/512 + 16
	limited := append([]string{"-c", fmt.Sprintf("ulimit -f %d && exec \"$0\" \"$@\"", blocks), l.t.program}, l.args(1)...)
	c, err := startChild(shell, limited...)
	if err != nil {
		return err
	}
	head := uint64(len(l.ends))
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		l.feed(c, l.lines())
	}()
	last, err := c.acks(head, head+1<<40, patienceOfDemo)
	if err == nil { // it went on for all its patience
		_ = c.kill() // the state says it
	}
	_ = c.in.Close() // it may be gone
	rest, rerr := c.rest(last)
	<-fed
	if rerr != nil {
		return rerr
	}
	said := c.errs.String()
	if code := c.cmd.ProcessState.ExitCode(); code != exitRejected {
		l.t.counts.Skipped = fmt.Sprintf("full: the limit did not take effect (exit code %d: %s)", code, strings.TrimSpace(said))
	} else {
		l.t.counts.Full++
	}
	return l.reopen(rest, 1)
}

// damage flips bits of copies, and cuts copies off.
func (l *torturedLog) damage() error {
	whole, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	copied := filepath.Join(l.t.dir, "copy.log")
	if n, err := l.findings(l.path); err != nil || n != 0 {
		return errors.Join(err, l.broken("verify finds %d things in a log that was closed", n))
	}
	for range flipsPerRound {
		at, bit := l.t.rng.IntN(len(whole)), byte(1)<<l.t.rng.IntN(8)
		whole[at] ^= bit
		err := os.WriteFile(copied, whole, 0o600)
		if err == nil {
			err = l.flipped(copied, at, bit)
		}
		if err != nil {
			return err
		}
		whole[at] ^= bit
	}
	for range cutsPerRound {
		size := l.t.rng.IntN(len(whole))
		if err := os.WriteFile(copied, whole[:size], 0o600); err != nil {
			return err
		}
		if err := l.cutOff(copied, size); err != nil {
			return err
		}
	}
	return os.Remove(copied)
}

// findings returns how many things verify has to say of a log.
func (l *torturedLog) findings(path string) (int, error) {
	r, err := pagelog.Verify(context.Background(), path, pagelog.VerifyOptions{AllowAnyFileSystem: l.t.anyFileSystem})
	if errors.Is(err, pagelog.ErrNotALog) || errors.Is(err, pagelog.ErrUnsupported) {
		return 1, nil
	}
	return len(r.Findings), err
}

// flipped checks that one wrong bit is found, and that nothing wrong is read.
func (l *torturedLog) flipped(path string, at int, bit byte) error {
	l.t.counts.Flips++
	n, err := l.findings(path)
	if err != nil {
		return err
	}
	if n == 0 {
		return l.broken("bit %#x of byte %d was flipped in a copy, and verify finds nothing", bit, at)
	}
	l.t.counts.FlipsFound++
	_, err = l.prefix(path)
	return err
}

// prefix reads what a damaged copy gives, which must be what was handed over,
// and says how much there is. Being refused is no violation.
func (l *torturedLog) prefix(path string) (commits uint64, err error) {
	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{AllowAnyFileSystem: l.t.anyFileSystem})
	if err != nil {
		return 0, nil // refused
	}
	n := 0
	for g, err := range r.Commits(0) {
		if err != nil {
			break // it is refused from here on
		}
		for record, err := range g.Records() {
			if err != nil || n >= l.lines() || !bytes.Equal(record.Data, l.line(n)) {
				return commits, errors.Join(l.broken("line %d of a damaged copy reads as %.60q, %v", n, record.Data, err), r.Close())
			}
			n++
		}
		commits++
	}
	return commits, r.Close()
}

// cutOff opens a copy that was cut off for writing: it is refused, or holds at
// least what it still proves acknowledged.
func (l *torturedLog) cutOff(path string, size int) error {
	l.t.counts.Cuts++
	log, err := pagelog.Open(path, pagelog.Options{AllowAnyFileSystem: l.t.anyFileSystem})
	if err != nil {
		l.t.counts.CutsRefused++
		return nil // the right answer
	}
	head := log.Head().Revision
	if err := log.Close(); err != nil {
		return err
	}
	// It was closed in peace, so its slots name all of it.
	if head != uint64(len(l.ends)) {
		return l.broken("a copy cut off after %d bytes opens with %d of %d commits, all of which its slots call durable", size, head, len(l.ends))
	}
	_, err = l.prefix(path)
	return err
}
