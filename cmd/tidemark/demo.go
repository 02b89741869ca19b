package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

// The demo tries each promise of a log on a real text, with real processes,
// and compares contents. It fails, and keeps its directory, if one is broken.

const (
	demoGroup = 10 // lines in a commit
	demoKills = 5
	// A writer is killed after so many acknowledgements, or after so long on
	// a slow disk, whichever is first.
	demoAcks  = 150 // more at each kill
	demoLimit = 1500 * time.Millisecond
)

func newDemo() *cobra.Command {
	var dir string
	var keep bool
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Show in seconds what a log promises, and that it holds",
		GroupID: groupLearn,
		Long: `Append a real text (the source of the Go standard library, or a sample), kill
the writer with SIGKILL in mid-write several times, and compare what it had
acknowledged with what is there. Then read beside a live writer, flip a bit in a
copy, and see it found and refused. Nothing leaves a temporary directory.

It exits with 1 if any promise is broken, and then keeps the directory.`,
		Example: `  tidemark demo
  tidemark demo --dir /var/tmp --keep`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.OutOrStdout(), dir, keep) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`DIRECTORY` in which to work, for another disk; the system's for temporary files by default")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the logs and say where they are")
	return cmd
}

func runDemo(w io.Writer, in string, keep bool) error {
	dir, err := os.MkdirTemp(in, "tidemark-demo-")
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	d := &demo{w: w, program: program, text: loadText(), path: filepath.Join(dir, "demo.log"), began: time.Now()}
	left := noTrace
	if keep {
		left = ""
	}
	return interruptible(left, func(ctx context.Context) error {
		err := d.run()
		if ctx.Err() != nil { // child processes were ended, too: what was seen then means nothing
			err = ctx.Err()
		}
		if keep || errors.Is(err, errBroken) {
			d.say("\nThe logs are in %s\n", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return errors.Join(err, d.failed)
	})
}

// demo is one run.
type demo struct {
	w       io.Writer
	program string // this program, for child processes
	text    *text
	path    string
	began   time.Time
	failed  error // of writing to w

	commits  uint64        // in the log
	acked    uint64        // acknowledged and compared
	writing  time.Duration // time in which killed writers worked
	inFlight uint64        // commits those writers acknowledged
}

func (d *demo) run() error {
	d.say(demoIntro, thousands(d.text.lines()), d.text.name, demoGroup)
	for _, act := range []func() error{d.killWriters, d.readBeside, d.damage, d.numbers} {
		if err := act(); err != nil {
			return err
		}
	}
	return nil
}

const demoIntro = `Tidemark demo

A log promises three things: what was acknowledged stays, a commit is there
whole or not at all, and damage is reported, never passed over. Each is tried
now on a real text: %s lines of %s.
%d lines are one commit, and the writer waits for the disk after each.

`

// say prints to whoever watches.
func (d *demo) say(format string, args ...any) {
	if _, err := fmt.Fprintf(d.w, format, args...); err != nil {
		d.failed = err
	}
}

// broken is the error of a promise that did not hold.
func (d *demo) broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s (%s)", errBroken, fmt.Sprintf(format, args...), d.path)
}

// killWriters is the first act.
func (d *demo) killWriters() error {
	d.say("1. Kill the writer\n\n"+
		"   A child process appends the text and is killed with SIGKILL in mid-write,\n"+
		"   %d times. After each death the log is opened again and every line in it is\n"+
		"   compared with the text.\n\n"+
		"   kill   acknowledged   found   lost   complete beyond   opened in\n", demoKills)
	for kill := 1; kill <= demoKills; kill++ {
		acked, err := d.killOne(uint64(kill * demoAcks))
		if err != nil {
			return err
		}
		found, took, err := d.reopen()
		if err != nil {
			return err
		}
		lost := int64(acked) - int64(min(found, acked))
		d.say("   %4d   %12s   %5s   %4d   %15d   %6.1f ms\n", kill,
			thousands(acked), thousands(found), lost, int64(found)-int64(acked)+lost, float64(took.Microseconds())/1000)
		if lost > 0 {
			return d.broken("%d acknowledged commits are lost", lost)
		}
		d.acked, d.commits = acked, found
	}
	d.say("\n   ok  %s commits were acknowledged; all are there, none in part\n"+
		"   ok  what is beyond them was written whole when the writer died, before it\n"+
		"       could say so: it is kept, and never half of it\n\n", thousands(d.acked))
	return nil
}

// killOne lets a child append behind the log's head and kills it. It returns
// the last revision that came out of its pipe.
func (d *demo) killOne(acks uint64) (uint64, error) {
	c, err := d.startAppend()
	if err != nil {
		return 0, err
	}
	go c.feed(d.text.from(d.commits * demoGroup))
	began := time.Now()
	last, err := c.acks(d.commits, d.commits+acks, demoLimit)
	if err == nil {
		err = c.kill()
	}
	if err != nil {
		return 0, errors.Join(err, c.giveUp())
	}
	d.writing += time.Since(began)
	last, err = c.rest(last)
	d.inFlight += last - d.commits
	return last, err
}

// reopen opens the log for writing, as the next writer would, compares all of
// it with the text and returns its head.
func (d *demo) reopen() (head uint64, took time.Duration, err error) {
	began := time.Now()
	log, err := pagelog.Open(d.path, pagelog.Options{})
	if err != nil {
		return 0, 0, d.broken("the log does not open after a kill: %v", err)
	}
	took = time.Since(began)
	defer func() { err = errors.Join(err, log.Close()) }()
	for g, err := range log.Commits(0) {
		if err != nil {
			return 0, 0, d.broken("the log does not read after a kill: %v", err)
		}
		if err := d.compare(g); err != nil {
			return 0, 0, err
		}
		head = g.Revision
	}
	return head, took, nil
}

// compare holds a commit against the lines it was made of.
func (d *demo) compare(g *pagelog.Group) error {
	n := (g.Revision - 1) * demoGroup
	if g.Count != demoGroup {
		return d.broken("commit %d has %d of its %d lines", g.Revision, g.Count, demoGroup)
	}
	for record, err := range g.Records() {
		if err != nil {
			return err
		}
		if want := d.text.line(n); !bytes.Equal(record.Data, want) {
			return d.broken("line %d of the log is %q, of the text %q", n+1, record.Data, want)
		}
		n++
	}
	return nil
}

// readBeside is the second act.
func (d *demo) readBeside() error {
	d.say("2. Read beside a live writer\n\n")
	c, err := d.startAppend()
	if err != nil {
		return err
	}
	const more = 50
	head := d.commits
	go c.feed(d.text.between(head*demoGroup, (head+more)*demoGroup))
	acked, err := c.acks(head, head+more, demoLimit)
	if err == nil {
		err = d.besideWriter(acked)
	}
	if err != nil {
		return errors.Join(err, c.giveUp())
	}
	acked, err = c.end(acked)
	if err != nil {
		return err
	}
	if acked != head+more {
		return d.broken("the writer ended with revision %d, it was given %d", acked, head+more)
	}
	d.acked, d.commits = acked, acked
	d.say("   ok  the first writer ends in peace, at commit %s\n\n", thousands(acked))
	return nil
}

// besideWriter runs other processes while a writer has the log.
func (d *demo) besideWriter(acked uint64) error {
	cat, err := d.tool("", "cat", d.path)
	if err != nil {
		return err
	}
	n := uint64(bytes.Count(cat.out, []byte("\n")))
	if cat.code != exitGood || n < acked*demoGroup || !bytes.Equal(cat.out, d.text.between(0, n)) {
		return d.broken("cat beside a writer exits %d after %d lines: %s", cat.code, n, cat.errs)
	}
	d.say("   ok  a second process reads %s lines, each equal to the text\n", thousands(n))
	writer, err := d.tool("never\n", "append", d.path)
	if err != nil {
		return err
	}
	if writer.code != exitLocked {
		return d.broken("a second writer exits %d beside the first: %s", writer.code, writer.errs)
	}
	d.say("   ok  a second writer is refused with exit code %d\n", writer.code)
	return nil
}

// damage is the third act.
func (d *demo) damage() error {
	bad := filepath.Join(filepath.Dir(d.path), "flipped.log")
	b, err := os.ReadFile(d.path)
	if err != nil {
		return err
	}
	// A writer checks the last MiB when it opens; verify checks everything.
	near := d.commits - min(d.commits/2, 500)
	line, at := d.text.unique(b, near*demoGroup)
	if at < 0 {
		return errors.New("no line of the text is in the log just once")
	}
	b[at] ^= 1 << 4
	if err := os.WriteFile(bad, b, 0o600); err != nil {
		return err
	}
	revision := line/demoGroup + 1
	d.say("3. Flip one bit in a copy\n\n   It is in byte %s of %s, in commit %s of %s.\n\n",
		thousands(uint64(at)), thousands(uint64(len(b))), thousands(revision), thousands(d.commits))
	if err := d.damageFound(bad, revision); err != nil {
		return err
	}
	after, err := os.ReadFile(bad)
	if err != nil {
		return err
	}
	if !bytes.Equal(after, b) {
		return d.broken("the damaged copy was changed")
	}
	d.say("   ok  the copy is, byte for byte, as it was\n")
	original, err := d.tool("", "verify", d.path)
	if err != nil {
		return err
	}
	if original.code != exitGood {
		return d.broken("verify exits %d on the original: %s", original.code, original.errs)
	}
	d.say("   ok  verify exits 0 on the original\n\n")
	return nil
}

// damageFound checks what each verb makes of damage in a commit.
func (d *demo) damageFound(bad string, revision uint64) error {
	found, err := d.tool("", "verify", bad)
	if err != nil {
		return err
	}
	if place := fmt.Sprintf("revision %d:", revision); found.code != exitCorrupt || !strings.Contains(string(found.out), place) {
		return d.broken("verify exits %d and does not find %s\n%s%s", found.code, place, found.out, found.errs)
	}
	finding, _, _ := strings.Cut(string(found.out), "\n")
	d.say("   ok  verify exits 1 and names the place:\n         %s\n", finding)
	cat, err := d.tool("", "cat", bad)
	if err != nil {
		return err
	}
	sound := (revision - 1) * demoGroup
	if cat.code != exitCorrupt || !bytes.Equal(cat.out, d.text.between(0, sound)) {
		return d.broken("cat exits %d and prints %d bytes of the damaged copy", cat.code, len(cat.out))
	}
	d.say("   ok  cat exits 1 after the %s lines before it, which are sound\n", thousands(sound))
	writer, err := d.tool("never\n", "append", bad)
	if err != nil {
		return err
	}
	if writer.code != exitCorrupt {
		return d.broken("a writer exits %d on the damaged copy: %s", writer.code, writer.errs)
	}
	d.say("   ok  the writer refuses it and exits 1\n")
	return nil
}

// numbers is the last act.
func (d *demo) numbers() error {
	info, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	lines := d.commits * demoGroup
	d.say("Numbers\n\n   %s commits, %s lines, %s of text in a file of %s\n", thousands(d.commits), thousands(lines),
		bytesText(int64(len(d.text.between(0, lines)))), bytesText(info.Size()))
	if d.writing > 0 {
		d.say("   %s commits per second from one writer that waits for the disk after each\n",
			thousands(uint64(float64(d.inFlight)/d.writing.Seconds())))
	}
	d.say("   %.1f seconds in all\n", time.Since(d.began).Seconds())
	return nil
}

// thousands shows a number with its digits in threes.
func thousands(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
