package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/notif"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// envRule repeats one run of the sweep: FAULTS_RULE=fdatasync:EIO:3.
const envRule = "FAULTS_RULE"

// TestSystemCalls_C22_C28_C47 lets every caught system call of every workload
// meet every fault that makes sense for it, one a run. After each run it reads
// the log as it stands, as the strictest power cut would leave it and as some
// other power cut would, and lets the unmodified program go on with it.
func TestSystemCalls_C22_C28_C47(t *testing.T) {
	for _, w := range workloads() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := newSweep(t, w)
			points := s.points()
			if rule := os.Getenv(envRule); rule != "" {
				r, err := notif.ParseRule(rule)
				if err != nil {
					t.Fatal(err)
				}
				points = []notif.Rule{r}
			} else if n := lab.Pick(14, len(points)); n < len(points) {
				points = thin(points, n)
			}
			for _, rule := range points {
				s.try(rule)
			}
			lab.Count("system-call faults", s.fired)
			t.Logf("%d faults, %d lies caught, %d calls did not come again", s.fired, s.caught, len(points)-s.fired)
		})
	}
}

// thin keeps n rules, spread over the list by a fixed shuffle.
func thin(rules []notif.Rule, n int) []notif.Rule {
	r := rand.New(rand.NewPCG(1, uint64(len(rules))))
	r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	return rules[:n]
}

// sweep runs one workload under many faults.
type sweep struct {
	*testing.T
	w      *workload
	state  state // what the workload begins with
	fired  int
	caught int
}

func newSweep(t *testing.T, w *workload) *sweep {
	s := &sweep{T: t, w: w}
	s.state = w.from(t)
	return s
}

// points runs the workload without a fault and lists what may go wrong.
func (s *sweep) points() []notif.Rule {
	r := s.begin(notif.Rule{})
	if r.result.Exit != 0 {
		s.Fatalf("without a fault: exit code %d: %s", r.result.Exit, r.result.Stderr)
	}
	counts := r.result.Counts
	r.check()
	var rules []notif.Rule
	for _, call := range notif.Calls() {
		for i := range counts[call] {
			for _, action := range notif.Actions(call) {
				rules = append(rules, notif.Rule{Call: call, Index: i + 1, Action: action})
			}
		}
	}
	return rules
}

func (s *sweep) try(rule notif.Rule) {
	r := s.begin(rule)
	if !r.result.Fired {
		s.Logf("%v: the call did not come this time", rule) // timing decides how often some do
		return
	}
	s.fired++
	r.check()
	if err := os.RemoveAll(r.dir); err != nil {
		s.Fatal(err)
	}
}

// run is one run and what is known of it.
type run struct {
	*sweep
	rule   notif.Rule
	dir    string // holds log, the folder under test, and images beside it
	ledger *oracle.Ledger
	shadow *notif.Shadow
	result notif.Result
}

func (r *run) log() string { return filepath.Join(r.dir, "log", "run.log") }

// fail says how to repeat the run.
func (r *run) fail(format string, args ...any) {
	r.Helper()
	var pending strings.Builder
	r.shadow.Describe(&pending)
	r.Fatalf("%v: %s\n%s%s said:\n%s%s\nrepeat: %s=%s go test -run '%s'", r.rule,
		fmt.Sprintf(format, args...), &pending, r.w.name, tailOf(r.result.Stdout), r.result.Stderr, envRule, r.rule, r.Name())
}

func tailOf(s string) string { return s[max(0, len(s)-600):] }

// begin runs the workload on a copy of its first state.
func (s *sweep) begin(rule notif.Rule) *run {
	r := &run{sweep: s, rule: rule, dir: lab.Scratch(s.T), ledger: s.state.ledger.Clone()}
	if err := os.CopyFS(filepath.Join(r.dir, "log"), os.DirFS(s.state.dir)); err != nil {
		s.Fatal(err)
	}
	var err error
	if r.shadow, err = notif.NewShadow(filepath.Join(r.dir, "log")); err != nil {
		s.Fatal(err)
	}
	r.result = r.execute(rule, s.w.stdin(r.ledger), s.w.argv(r.log()))
	if err := s.w.hear(r.ledger, &r.result); err != nil {
		r.fail("%v", err)
	}
	return r
}

// execute runs a program below the injector.
func (r *run) execute(rule notif.Rule, stdin string, argv []string) notif.Result {
	ctx, stop := context.WithTimeout(r.Context(), lab.Patience)
	defer stop()
	i := notif.Run{
		Helper: []string{lab.Faultd(), "exec"}, Program: argv, Dir: filepath.Dir(r.log()),
		Rule: rule, Shadow: r.shadow, Stdin: strings.NewReader(stdin),
	}
	result, err := i.Do(ctx)
	if err != nil {
		r.result = result
		r.fail("%v", err)
	}
	return result
}

// check holds the run against what was promised.
func (r *run) check() {
	r.checkExit()
	if r.w.reads {
		return // hear did it
	}
	found := r.checkCat()
	if r.rule.Action == notif.Lie {
		r.checkLie()
		return
	}
	r.checkImage("strict", nil)
	r.checkImage("torn", rand.New(rand.NewPCG(uint64(r.rule.Index), 7)))
	r.goOn(found)
}

// checkExit holds the exit code against the fault.
func (r *run) checkExit() {
	exit, a := r.result.Exit, r.rule.Action
	killed := a == notif.Kill || a == notif.KillAfter || a == notif.TornKill
	retried := a == notif.Short || a == notif.EINTR && r.rule.Call != notif.Fdatasync && r.rule.Call != notif.Fsync
	switch {
	case strings.Contains(r.result.Stderr, "panic"), strings.Contains(r.result.Stderr, "internal error"):
		r.fail("the program fell over")
	case killed && exit != -1, !killed && exit == -1:
		r.fail("exit code %d", exit)
	case (retried || a == notif.None) && exit != 0:
		r.fail("exit code %d, though the call can be continued", exit)
	case !killed && exit != 0 && exit != 2 && exit != 4:
		r.fail("exit code %d, which is none for a fault of the system", exit)
	}
}

// checkCat reads the log as it stands, by the program.
func (r *run) checkCat() []oracle.Group {
	out := lab.Execute(r, "", lab.Tidemark(), "cat", "--json", r.log())
	if _, err := os.Stat(r.log()); errors.Is(err, fs.ErrNotExist) && r.ledger.MayBeMissing() {
		return nil
	}
	if out.Exit != 0 {
		r.fail("cat: exit code %d: %s", out.Exit, out.Stderr)
	}
	groups, err := oracle.FromCat(strings.NewReader(out.Stdout))
	if err == nil {
		err = r.ledger.Check(groups, oracle.Death)
	}
	if err != nil {
		r.fail("cat: %v", err)
	}
	return groups
}

// checkImage recovers what a power cut may leave now.
func (r *run) checkImage(name string, random *rand.Rand) {
	if err := r.image(name, random); err != nil {
		r.fail("after a %s power cut: %v", name, err)
	}
	lab.Count("images of a shadowed disk", 1)
}

func (r *run) image(name string, random *rand.Rand) error {
	dir := filepath.Join(r.dir, name)
	if err := r.shadow.Image(dir, random); err != nil {
		return err
	}
	groups, err := oracle.Recover(filepath.Join(dir, "run.log"), pagelog.Options{})
	if errors.Is(err, fs.ErrNotExist) && r.ledger.MayBeMissing() {
		err = nil
	}
	if err == nil {
		err = r.ledger.Check(groups, oracle.PowerCut)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// checkLie fails if a disk that lies goes unnoticed: of the syncs that lied, the
// last ones carry nothing that was promised, all others do.
func (r *run) checkLie() {
	err := r.image("lied", nil)
	switch {
	case err != nil:
		r.caught++
		lab.Count("lying syncs caught", 1)
	case r.result.Lies > r.w.idleSyncs && r.result.Exit == 0:
		r.fail("%d syncs lied and nothing was lost: this test cannot see it", r.result.Lies)
	}
}

// goOn lets the program write one commit more to what the fault left, and then
// demands all of it back from the strictest power cut.
func (r *run) goOn(found []oracle.Group) {
	if err := r.ledger.Settle(found); err != nil {
		r.fail("%v", err)
	}
	more := oracle.Attempt{Revision: uint64(len(found)) + 1, Try: afterTry}
	r.ledger.Offer(more)
	r.result = r.execute(notif.Rule{}, oracle.Text(more, 0, 1, 500)+"\n", []string{lab.Tidemark(), "append", "--ack", r.log()})
	if want := fmt.Sprintf("%d\n", more.Revision); r.result.Exit != 0 || r.result.Stdout != want {
		r.fail("going on: exit code %d, said %q, want %q", r.result.Exit, r.result.Stdout, want)
	}
	r.ledger.Ack(more, true)
	groups, err := oracle.Read(r.log(), pagelog.ReaderOptions{})
	err = errors.Join(err, r.ledger.Check(groups, oracle.Death), oracle.Verify(r.log(), false))
	if err != nil {
		r.fail("going on: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "log", ".*")); err != nil || slices.ContainsFunc(left, func(string) bool { return r.state.ledger.Complete() == 0 && len(found) == 0 }) {
		r.fail("left behind: %q, %v", left, err)
	}
	r.checkImage("gone on", nil)
}
