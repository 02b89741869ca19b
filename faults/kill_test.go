package faults_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// killsPerLog is how often the writer of one log dies.
const killsPerLog = 125

// TestKill_C47_C38 kills writers at any moment, in the middle of opening too,
// while two processes follow the log. It proves nothing about syncs: the page
// cache outlives the writer.
func TestKill_C47_C38(t *testing.T) {
	total := lab.Pick(160, 5000)
	for _, w := range []killedWriter{
		{"append", cliWriter, []string{"append", "--ack"}},
		{"append complete only", cliWriter, []string{"append", "--ack", "--sync", "complete"}},
		{"mixed", victimWriter, []string{"-forever", "-size", "900"}},
		{"mixed, large and with checkpoints", victimWriter, []string{"-forever", "-size", "60000", "-checkpoint", "100000"}},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			for left, log := total/4, 0; left > 0; log++ {
				n := min(left, killsPerLog)
				newKillLoop(t, w, uint64(log)).run(n)
				left -= n
			}
		})
	}
}

// killedWriter is a writer that goes on until it is killed.
type killedWriter struct {
	name  string
	write func(k *killLoop, round int) (said string)
	argv  []string
}

type killLoop struct {
	*testing.T
	w      killedWriter
	log    string
	ledger *oracle.Ledger
	random *rand.Rand
}

func newKillLoop(t *testing.T, w killedWriter, seed uint64) *killLoop {
	return &killLoop{
		T: t, w: w, log: filepath.Join(lab.Scratch(t), "run.log"), ledger: oracle.New(),
		random: rand.New(rand.NewPCG(seed, uint64(len(w.name)))),
	}
}

func (k *killLoop) run(kills int) {
	k.Helper()
	lab.Execute(k, "", lab.Tidemark(), "create", k.log).Want(k, 0)
	all := follow(k, "tail", "--follow", "--json", k.log)
	durable := follow(k, "tail", "--follow", "--durable", "--json", k.log)
	for round := 1; round <= kills; round++ {
		said := k.w.write(k, round)
		if err := k.ledger.Hear(said); err != nil {
			k.Fatal(err)
		}
		k.settle(round)
	}
	lab.Count("kills", kills)
	end := k.finish()
	for _, f := range []*follower{all, durable} {
		f.end(k.ledger, end)
	}
	lab.Count("commits compared after kills", int(end))
}

// settle compares what is new with what was acknowledged, as a reader beside
// nobody sees it.
func (k *killLoop) settle(round int) {
	k.Helper()
	r, err := pagelog.OpenReader(k.log, readAnything)
	if err != nil {
		k.Fatal(err)
	}
	defer r.Close()
	groups, err := oracle.After(r, k.ledger.Base())
	if err == nil {
		err = k.ledger.CheckNew(groups, oracle.Death)
	}
	if err == nil {
		err = k.ledger.Settle(groups)
	}
	if err != nil {
		k.Fatalf("after kill %d: %v", round, err)
	}
}

// finish closes the log properly, checks all of it and returns its head.
func (k *killLoop) finish() uint64 {
	k.Helper()
	groups, err := oracle.Recover(k.log, pagelog.Options{})
	if err == nil {
		err = k.ledger.Check(groups, oracle.Death)
	}
	if err != nil {
		k.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(k.log), ".*")); err != nil || len(left) > 0 {
		k.Errorf("left behind: %q, %v", left, err)
	}
	return uint64(len(groups))
}

// die lets the writer say some lines and kills it a moment later.
func (k *killLoop) die(p *lab.Process) (said string) {
	var b strings.Builder
	for range k.random.IntN(9) {
		line, err := p.Hear()
		if err != nil {
			k.Fatalf("the writer died by itself: %s", p.Stderr())
		}
		b.WriteString(line + "\n")
	}
	if k.random.IntN(3) > 0 {
		<-time.After(time.Duration(k.random.IntN(3000)) * time.Microsecond)
	}
	if err := p.Cmd.Process.Kill(); err != nil {
		k.Fatal(err)
	}
	b.WriteString(p.HearAll())
	if exit := p.Wait(); exit != -1 {
		k.Fatalf("the writer ended with %d: %s", exit, p.Stderr())
	}
	return b.String()
}

func victimWriter(k *killLoop, round int) string {
	argv := append(append([]string{lab.Victim(), "-try", strconv.Itoa(round * 10)}, k.w.argv...), k.log, "dccScdKcdRc")
	return k.die(lab.Start(k, argv...))
}

// cliWriter feeds the command line program and says its acknowledgements in the
// words of the ledger.
func cliWriter(k *killLoop, round int) string {
	p := lab.Start(k, append(append([]string{lab.Tidemark()}, k.w.argv...), k.log)...)
	next := k.ledger.Base() + 1
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for r := next; p.Say("%s", oracle.Text(oracle.Attempt{Revision: r, Try: round}, 0, 1, 40+int(r%5)*700)) == nil; r++ {
		}
	}()
	lines := strings.Split(k.die(p), "\n")
	p.CloseIn()
	<-fed
	kind := "durable"
	if strings.Contains(k.w.name, "complete") {
		kind = "complete"
	}
	var said strings.Builder
	for _, line := range lines[:len(lines)-1] {
		if line != strconv.FormatUint(next, 10) {
			k.Fatalf("acknowledged %q, want %d", line, next)
		}
		fmt.Fprintf(&said, "offer %d %d\nack %d %d %s\n", next, round, next, round, kind)
		next++
	}
	fmt.Fprintf(&said, "offer %d %d\n", next, round) // the one in flight
	return said.String()
}

// follower is a process that follows a log through all the deaths of its
// writers.
type follower struct {
	t      testing.TB
	p      *lab.Process
	groups chan oracle.Group
	seen   []oracle.Group
	err    error
}

func follow(t testing.TB, argv ...string) *follower {
	f := &follower{t: t, p: lab.Start(t, append([]string{lab.Tidemark()}, argv...)...), groups: make(chan oracle.Group, 1<<16)}
	go func() {
		defer close(f.groups)
		f.err = oracle.EachFromCat(bufio.NewReader(f.p.Out()), func(g oracle.Group) { f.groups <- g })
	}()
	return f
}

// end waits until the follower has seen the head, stops it, and compares what
// it saw with the log.
func (f *follower) end(l *oracle.Ledger, head uint64) {
	f.t.Helper()
	patience := time.After(lab.Patience)
	for uint64(len(f.seen)) < head {
		select {
		case g, ok := <-f.groups:
			if !ok {
				f.t.Fatalf("a follower ended at revision %d of %d: %v", len(f.seen), head, errors.Join(f.err, errors.New(f.p.Stderr())))
			}
			f.seen = append(f.seen, g)
		case <-patience:
			f.t.Fatalf("a follower hangs at revision %d of %d", len(f.seen), head)
		}
	}
	if err := f.p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		f.t.Fatal(err)
	}
	for g := range f.groups {
		f.seen = append(f.seen, g)
	}
	if exit := f.p.Wait(); exit != 128+int(syscall.SIGTERM) {
		f.t.Errorf("a follower ended with %d: %s", exit, f.p.Stderr())
	}
	if uint64(len(f.seen)) != head {
		f.t.Errorf("a follower saw %d commits of %d", len(f.seen), head)
	}
	if err := l.Check(f.seen, oracle.Death); err != nil {
		f.t.Errorf("a follower: %v", err)
	}
}

// TestCreate_Killed_C26 kills creation at any moment: a log is there, or none,
// and the next creation sweeps up.
func TestCreate_Killed_C26(t *testing.T) {
	t.Parallel()
	dir := lab.Scratch(t)
	random := rand.New(rand.NewPCG(3, 3))
	n := lab.Pick(25, 300)
	for i := range n {
		log := filepath.Join(dir, strconv.Itoa(i))
		p := lab.Start(t, lab.Tidemark(), "create", log)
		<-time.After(time.Duration(random.IntN(9000)) * time.Microsecond)
		p.Kill()
		if _, err := pagelog.OpenReader(log, readAnything); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if out := lab.Execute(t, "line\n", lab.Tidemark(), "append", "--ack", log).Want(t, 0); out.Stdout != "1\n" {
			t.Fatalf("said %q", out.Stdout)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	lab.Count("kills", n)
}
