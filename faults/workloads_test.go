package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/notif"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// Numbers of tries, so that every process that offers a revision offers other
// contents.
const (
	stateTry = 0
	loadTry  = 1000
	afterTry = 2000
)

// state is a folder with the log run.log in it, or nothing, and what was
// promised of it.
type state struct {
	dir    string
	ledger *oracle.Ledger
}

// workload is a program that a fault is to hit.
type workload struct {
	name  string
	from  func(t *testing.T) state
	argv  func(log string) []string
	stdin func(l *oracle.Ledger) string                      // offers what it holds
	hear  func(l *oracle.Ledger, result *notif.Result) error // takes in what came of it
	reads bool                                               // it never writes

	// idleSyncs is how many syncs at the end carry nothing that was promised:
	// a slot that saves the next one work.
	idleSyncs int
}

func workloads() []*workload {
	return []*workload{
		appends("append to a new log", noLog, appendShape{commits: 4, lines: 1, size: 700}),
		appends("append to a closed log", closedLog, appendShape{commits: 4, lines: 1, size: 700}),
		appends("append to a killed log", killedLog, appendShape{commits: 3, lines: 1, size: 3000}),
		appends("append to a torn log", tornLog, appendShape{commits: 3, lines: 1, size: 9000}),
		appends("append groups", noLog, appendShape{commits: 3, lines: 3, size: 30000}),
		appends("append complete only", closedLog, appendShape{commits: 5, lines: 1, size: 700, complete: true}),
		appends("append large", closedLog, appendShape{commits: 3, lines: 2, size: 400000}),
		appends("append complete only to a killed log", killedLog, appendShape{commits: 6, lines: 2, size: 5000, complete: true}),
		appends("append for long", noLog, appendShape{commits: 14, lines: 1, size: 16000}),
		victims("mixed on a torn log", tornLog, "dcKScRdc"),
		victims("mixed", noLog, "dcSdcKcRdcd"),
		victims("mixed on a killed log", killedLog, "cdSccKRcd"),
		victims("checkpoints", closedLog, "dddddddKdd", "-checkpoint", "4096", "-size", "2500", "-lines", "1"),
		creates(),
		victims("group of 40 lines", closedLog, "dcSd", "-lines", "40", "-size", "50000"),
		victims("small pages", noLog, "dRcScRd", "-page-size", "4096", "-size", "6000"),
		readers("cat a killed log", killedLog, "cat", "--json"),
		readers("durable tail", killedLog, "tail", "--durable", "--json"),
		readers("stat a closed log", closedLog, "stat", "--json"),
		readers("cat a closed log", closedLog, "cat", "--json"),
		readers("cat a torn log", tornLog, "cat", "--json"),
		readers("verify a torn log", tornLog, "verify"),
	}
}

// appendShape is what is fed to the append verb.
type appendShape struct {
	commits, lines, size int
	complete             bool
}

func appends(name string, from func(*testing.T) state, shape appendShape) *workload {
	flags := []string{"--ack", "--group", strconv.Itoa(shape.lines)}
	if shape.complete {
		flags = append(flags, "--sync", "complete")
	}
	return &workload{
		name: name, from: from, idleSyncs: 1,
		argv: func(log string) []string {
			return append([]string{lab.Tidemark(), "append", log}, flags...)
		},
		stdin: func(l *oracle.Ledger) string {
			var in strings.Builder
			for i, first := uint64(0), l.Complete()+1; i < uint64(shape.commits); i++ {
				a := oracle.Attempt{Revision: first + i, Try: loadTry}
				l.Offer(a)
				for _, text := range oracle.Texts(a, shape.lines, shape.size) {
					in.WriteString(text + "\n")
				}
			}
			return in.String()
		},
		hear: shape.hear,
	}
}

// hear takes in the acknowledged revisions. What follows the last of them may
// be there unless the program says otherwise; what follows that was never
// begun.
func (shape appendShape) hear(l *oracle.Ledger, result *notif.Result) error {
	first := l.Complete() + 1
	next, end := first, first+uint64(shape.commits)
	lines := strings.Split(result.Stdout, "\n")
	for _, line := range lines[:len(lines)-1] {
		if line != strconv.FormatUint(next, 10) {
			return fmt.Errorf("acknowledged %q behind %d", line, next-1)
		}
		l.Ack(oracle.Attempt{Revision: next, Try: loadTry}, !shape.complete)
		next++
	}
	if result.Exit == 0 {
		if next != end {
			return fmt.Errorf("exit code 0 after revision %d of %d", next-1, end-1)
		}
		l.Synced(end - 1)
		return nil
	}
	unknown := result.Exit == -1 || strings.Contains(result.Stderr, "outcome unknown") || strings.Contains(result.Stderr, "poisoned")
	if unknown && next < end {
		next++
	}
	for ; next < end; next++ {
		l.Reject(oracle.Attempt{Revision: next, Try: loadTry})
	}
	return nil
}

func victims(name string, from func(*testing.T) state, script string, flags ...string) *workload {
	return &workload{
		name: name, from: from, idleSyncs: 1,
		argv: func(log string) []string {
			argv := append([]string{lab.Victim(), "-try", strconv.Itoa(loadTry)}, flags...)
			return append(argv, log, script)
		},
		stdin: func(*oracle.Ledger) string { return "" },
		hear: func(l *oracle.Ledger, result *notif.Result) error {
			if result.Exit == 9 || result.Exit == 1 || result.Exit == 3 {
				return fmt.Errorf("exit code %d", result.Exit)
			}
			return l.Hear(result.Stdout)
		},
	}
}

// creates is the create verb: what it leaves is a log or none.
func creates() *workload {
	return &workload{
		name: "create", from: noLog, idleSyncs: 2,
		argv:  func(log string) []string { return []string{lab.Tidemark(), "create", log} },
		stdin: func(*oracle.Ledger) string { return "" },
		hear: func(l *oracle.Ledger, result *notif.Result) error {
			if result.Exit == 0 {
				l.Exist()
			}
			return nil
		},
	}
}

// readers are verbs that read: they say what is there, or that they cannot.
func readers(name string, from func(*testing.T) state, verb ...string) *workload {
	return &workload{
		name: name, from: from, reads: true,
		argv: func(log string) []string {
			return append(append([]string{lab.Tidemark()}, verb...), log)
		},
		stdin: func(*oracle.Ledger) string { return "" },
		hear: func(l *oracle.Ledger, result *notif.Result) error {
			if verb[0] != "cat" || result.Exit == -1 {
				return nil
			}
			groups, err := oracle.FromCat(strings.NewReader(result.Stdout))
			if err != nil {
				return err
			}
			if result.Exit == 0 {
				return l.Check(groups, oracle.Death)
			}
			return l.CheckPrefix(groups)
		},
	}
}

// once makes each first state once for all workloads.
var once sync.Map

func makeOnce(t *testing.T, name string, fill func(t *testing.T, s *state)) state {
	t.Helper()
	made, _ := once.LoadOrStore(name, sync.OnceValue(func() state {
		s := state{dir: lab.Keep(t, name), ledger: oracle.New()}
		fill(t, &s)
		return s
	}))
	return made.(func() state)()
}

func (s *state) log() string { return filepath.Join(s.dir, "run.log") }

func noLog(t *testing.T) state {
	return makeOnce(t, "none", func(*testing.T, *state) {})
}

func closedLog(t *testing.T) state {
	return makeOnce(t, "closed", func(t *testing.T, s *state) {
		out := lab.Execute(t, "", lab.Victim(), s.log(), "ddcddc").Want(t, 0)
		s.heard(t, out.Stdout)
	})
}

// killedLog was never closed, and its last commits were never synced.
func killedLog(t *testing.T) state {
	return makeOnce(t, "killed", func(t *testing.T, s *state) {
		p := lab.Start(t, lab.Victim(), s.log(), "ddRdccw")
		var said strings.Builder
		for line := ""; line != "waiting"; {
			var err error
			if line, err = p.Hear(); err != nil {
				t.Fatal(err)
			}
			said.WriteString(line + "\n")
		}
		p.Kill()
		s.heard(t, said.String())
	})
}

// tornLog ends in half of a commit.
func tornLog(t *testing.T) state {
	return makeOnce(t, "torn", func(t *testing.T, s *state) {
		const size = "6000"
		dry := lab.Scratch(t)
		script := "dddd"
		rule := notif.Rule{Call: notif.Pwrite64, Action: notif.TornKill}
		argv := func(dir string) []string {
			return []string{lab.Victim(), "-size", size, filepath.Join(dir, "run.log"), script}
		}
		i := notif.Run{Helper: []string{lab.Faultd(), "exec"}, Program: argv(dry), Dir: dry}
		result, err := i.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// From the last write back: the one that is a commit leaves it torn.
		for rule.Index = result.Counts[notif.Pwrite64]; rule.Index > 0; rule.Index-- {
			if err := os.RemoveAll(s.log()); err != nil {
				t.Fatal(err)
			}
			i := notif.Run{Helper: []string{lab.Faultd(), "exec"}, Program: argv(s.dir), Dir: s.dir, Rule: rule}
			if result, err = i.Do(t.Context()); err != nil {
				t.Fatal(err)
			}
			if out := lab.Execute(t, "", lab.Tidemark(), "verify", "--json", s.log()); strings.Contains(out.Stdout, `"torn":true`) {
				s.heard(t, result.Stdout)
				return
			}
		}
		t.Fatal("no torn write left a torn log")
	})
}

func (s *state) heard(t *testing.T, said string) {
	t.Helper()
	err := s.ledger.Hear(said)
	var groups []oracle.Group
	if err == nil {
		groups, err = oracle.Read(s.log(), readAnything)
	}
	if err == nil {
		err = s.ledger.Check(groups, oracle.Death)
	}
	if err == nil {
		err = s.ledger.Settle(groups)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var (
	readAnything        = pagelog.ReaderOptions{AllowAnyFileSystem: true}
	readAnythingToWrite = pagelog.Options{AllowAnyFileSystem: true}
)
