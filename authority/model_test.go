package authority

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/snapshot"
)

// An explicit-state model of one run among two or three processes, with kills,
// power loss, one failed sync, an unlinked lock file and a state file put back
// from a copy. Every reachable state is checked; then every transition of the
// two-process model is replayed on the real code over the simulated machine,
// and every path up to a depth, comparing each outcome and each phase.

// role is what a process has of the run.
type role uint8

const (
	roleNone role = iota
	roleActive
	roleSuspended
	rolePrepared
	roleConsumed
)

type modelProcess struct {
	role   role
	fate   uint8 // 1 uncertain, 2 lost
	fenced bool
	lock   uint8 // the lock file it holds
	state  uint8 // the state file it holds
}

type modelRecord struct {
	phase Phase
	tg    uint8
}

type modelState struct {
	procs    [3]modelProcess
	visible  modelRecord
	durable  modelRecord
	restored bool // the state file was put back, and a witness tells
	witness  bool // one that knows of a record after the first suspension
	excused  bool // put back where power loss had taken the witness: the known limit
	lock     uint8
	state    uint8
	files    uint8    // lock and state files ever made
	issued   [4]bool  // claims by transition generation
	executed [4]uint8 // activations by claim
	copied   bool     // a copy of the first suspension exists

	eio, kill, power, unlink, restore uint8 // accidents left
}

// action is one step: an operation of a process, or an accident.
type action struct {
	name string
	p    int
	n    uint8 // the claim of prepare; 1 for "with a failed sync" or "kept"
}

const (
	ok         = "ok"
	inert      = "" // not possible here
	busy       = "busy"
	state      = "state"
	unverified = "verification"
	uncertain  = "uncertain"
	lost       = "lost"
	missing    = "unavailable"
)

const modelGenerations = 3

// actions lists what can be tried by n processes.
func actions(n int) []action {
	var out []action
	for p := range n {
		for _, name := range []string{"start", "suspend", "resume", "finish", "consume", "activate"} {
			out = append(out, action{name, p, 0}, action{name, p, 1})
		}
		for c := uint8(1); c <= modelGenerations; c++ {
			out = append(out, action{"prepare", p, c})
		}
		out = append(out, action{"resolve", p, 0}, action{"close", p, 0}, action{"kill", p, 0})
	}
	return append(out, action{"power", 0, 0}, action{"power", 0, 1}, action{"unlink", 0, 0}, action{"restore", 0, 0})
}

// damaged is a run that cannot be believed.
func (s *modelState) damaged() bool { return s.state != 0 && (s.lock == 0 || s.restored) }

// holder is the process with the run's locks, or -1.
func (s *modelState) holder() int {
	for i := range s.procs {
		if s.procs[i].role != roleNone {
			return i
		}
	}
	return -1
}

// next is the specification: the outcome of an action and the state after it.
func (s modelState) next(a action) (modelState, string) {
	p := &s.procs[a.p]
	switch a.name {
	case "kill":
		if s.kill == 0 || p.role == roleNone && !p.fenced {
			return s, inert
		}
		s.kill--
		*p = modelProcess{}
		return s, ok
	case "power":
		if s.power == 0 {
			return s, inert
		}
		s.power--
		if a.n == 0 {
			s.excused = s.excused || s.restored
			s.visible, s.witness, s.restored = s.durable, false, false
		}
		s.durable = s.visible
		s.procs = [3]modelProcess{}
		if s.visible.phase == 0 {
			s.state = 0
		}
		return s, ok
	case "unlink":
		if s.unlink == 0 || s.lock == 0 {
			return s, inert
		}
		s.unlink--
		s.lock, s.restored, s.witness = 0, false, false
		return s, ok
	case "restore":
		if s.restore == 0 || !s.copied || s.durable != s.visible || s.visible.phase == Suspended && s.visible.tg == 1 {
			return s, inert
		}
		s.restore--
		s.files++
		s.state, s.restored = s.files, s.witness
		s.excused = s.excused || s.lock != 0 && !s.witness
		s.visible = modelRecord{Suspended, 1}
		s.durable = s.visible
		return s, ok
	case "start", "prepare", "resolve":
		if p.role != roleNone {
			return s, inert
		}
		return s.take(a)
	}
	if p.role == roleNone {
		return s, inert
	}
	if a.name == "close" {
		if out := ok; p.role == roleConsumed || p.fate == 1 {
			out = uncertain
			*p = modelProcess{fenced: true}
			return s, out
		}
		*p = modelProcess{fenced: p.fenced}
		return s, ok
	}
	return s.held(a)
}

// take is an operation that begins without the run.
func (s modelState) take(a action) (modelState, string) {
	p := &s.procs[a.p]
	if a.name == "prepare" && (!s.issued[a.n] || s.visible != modelRecord{Suspended, a.n}) {
		if !s.issued[a.n] {
			return s, inert
		}
		return s, unverified
	}
	switch {
	case p.fenced:
		return s, uncertain
	case a.name == "resolve" && s.state == 0:
		return s, state
	case s.holder() >= 0:
		return s, busy
	}
	switch a.name {
	case "start":
		if a.n == 1 && s.eio == 0 {
			return s, inert
		}
		if s.state != 0 {
			return s, state
		}
		if s.lock == 0 {
			s.files++
			s.lock = s.files
		}
		s.files++
		s.state = s.files
		s.visible = modelRecord{Active, 1}
		if a.n == 1 {
			s.eio--
			p.fenced = true
			return s, uncertain
		}
		s.durable = s.visible
		*p = modelProcess{role: roleActive, lock: s.lock, state: s.state}
	case "prepare":
		if s.lock == 0 {
			return s, missing
		}
		if s.damaged() {
			return s, state
		}
		*p = modelProcess{role: rolePrepared, lock: s.lock, state: s.state}
	case "resolve":
		if s.lock == 0 {
			s.files++
			s.lock = s.files
		}
		s.witness = true
		if s.visible.phase.Terminal() && !s.restored {
			return s, state
		}
		s.files++
		s.state, s.restored = s.files, false
		if !s.visible.phase.Terminal() {
			s.visible.phase = Failed
		}
		s.durable = s.visible
	}
	return s, ok
}

// held is a transition of a held run.
func (s modelState) held(a action) (modelState, string) {
	p := &s.procs[a.p]
	next, after := s.visible, roleNone
	switch {
	case a.name == "suspend" && p.role == roleActive:
		next.phase, after = Suspended, roleSuspended
	case a.name == "resume" && p.role == roleSuspended:
		next.phase, after = Active, roleActive
		next.tg++
	case a.name == "finish" && (p.role == roleActive || p.role == roleSuspended):
		next.phase = Completed
	case a.name == "consume" && p.role == rolePrepared:
		next.phase, after = Importing, roleConsumed
		next.tg++
	case a.name == "activate" && p.role == roleConsumed:
		next.phase, after = Active, roleActive
	default:
		return s, inert
	}
	if next.tg > modelGenerations {
		return s, inert
	}
	switch {
	case p.fate == 1:
		return s, uncertain
	case p.fate == 2 || p.lock != s.lock || p.state != s.state:
		p.fate = 2
		return s, lost
	case a.n == 1 && s.eio == 0:
		return s, inert
	}
	claim := s.visible.tg
	s.visible = next
	if a.n == 1 {
		s.eio--
		p.fate, p.fenced = 1, true
		return s, uncertain
	}
	s.durable = next
	s.witness = next != modelRecord{Suspended, 1}
	p.role = after
	switch a.name {
	case "suspend":
		s.issued[next.tg] = true
		s.copied = s.copied || next.tg == 1
	case "activate":
		s.executed[claim-1]++ // the claim of the generation before
	case "finish":
		*p = modelProcess{fenced: p.fenced}
	}
	return s, ok
}

// check is what must hold in every state, and from one to the next.
func check(before, s modelState, a action) error {
	owners := 0
	for _, p := range s.procs {
		if p.role != roleNone && p.fate != 2 {
			owners++
		}
	}
	if owners > 1 {
		return errors.New("two holders")
	}
	for _, n := range s.executed {
		if n > 1 && !s.excused {
			return errors.New("a claim was executed twice")
		}
	}
	if a.name != "restore" && a.name != "power" {
		if s.visible.tg < before.visible.tg {
			return errors.New("the generation went back")
		}
		if before.visible.phase.Terminal() && !s.visible.phase.Terminal() {
			return errors.New("a tombstone was not absorbing")
		}
	}
	if before.durable.phase.Terminal() && a.name != "restore" && !s.excused && !s.durable.phase.Terminal() {
		return errors.New("a durable tombstone vanished")
	}
	return nil
}

func firstState(long bool) modelState {
	s := modelState{eio: 1, kill: 1, power: 1, unlink: 1, restore: 1}
	if long {
		s.kill, s.power = 2, 2
	}
	return s
}

// explore visits every reachable state; visit gets each transition with the
// path to where it begins.
func explore(t *testing.T, n int, first modelState, visit func(path []action, a action)) int {
	type node struct {
		s    modelState
		from int
		by   action
	}
	nodes := []node{{s: first, from: -1}}
	seen := map[modelState]bool{first: true}
	all := actions(n)
	for i := 0; i < len(nodes); i++ {
		for _, a := range all {
			s, out := nodes[i].s.next(a)
			if out == inert {
				continue
			}
			if err := check(nodes[i].s, s, a); err != nil {
				t.Fatalf("%v after %v in %+v", err, a, nodes[i].s)
			}
			if visit != nil {
				var path []action
				for j := i; nodes[j].from >= 0; j = nodes[j].from {
					path = append([]action{nodes[j].by}, path...)
				}
				visit(path, a)
			}
			if !seen[s] {
				seen[s] = true
				nodes = append(nodes, node{s: s, from: i, by: a})
			}
		}
	}
	return len(nodes)
}

func TestModel_EveryState(t *testing.T) {
	first := firstState(os.Getenv("TIDEMARK_LONG") != "")
	for _, n := range []int{2, 3} {
		t.Logf("%d processes: %d states", n, explore(t, n, first, nil))
	}
}

// A seeded fault for each property: the checker must find it.
func TestModel_FindsSeededFaults(t *testing.T) {
	two := modelState{procs: [3]modelProcess{{role: roleActive}, {role: rolePrepared}}}
	if check(modelState{}, two, action{}) == nil {
		t.Error("two holders")
	}
	if check(modelState{}, modelState{executed: [4]uint8{2}}, action{}) == nil {
		t.Error("twice executed")
	}
	over := modelState{visible: modelRecord{Completed, 1}, durable: modelRecord{Completed, 1}}
	if check(over, modelState{visible: modelRecord{Active, 1}}, action{}) == nil {
		t.Error("tombstone")
	}
	if check(over, modelState{}, action{name: "power"}) == nil {
		t.Error("durable tombstone")
	}
	if check(modelState{visible: modelRecord{Active, 2}}, modelState{visible: modelRecord{Active, 1}}, action{}) == nil {
		t.Error("generation")
	}
}

// replay is the real code on a simulated machine, driven by actions.
type replay struct {
	t      *testing.T
	w      *world
	procs  [3]*process
	leases [3]*Lease
	moves  [3]*Import
	claims [modelGenerations + 1]Envelope
	copied []byte
}

func newReplay(t *testing.T) *replay {
	r := &replay{t: t, w: &world{t: t, sim: securedir.NewSim()}}
	r.boot()
	return r
}

func (r *replay) boot() {
	for i := range r.procs {
		r.restart(i)
	}
}

func (r *replay) restart(i int) {
	r.procs[i] = r.w.boot()
	r.leases[i], r.moves[i] = nil, nil
}

// do runs an action and names its outcome.
func (r *replay) do(a action) string {
	switch a.name {
	case "kill":
		r.procs[a.p].Kill()
		r.restart(a.p)
		return ok
	case "power":
		fate := securedir.Lost
		if a.n == 1 {
			fate = securedir.Kept
		}
		old := r.w
		r.w = &world{t: r.t, sim: old.sim.PowerCut(func(int) securedir.Fate { return fate })}
		old.reap()
		r.boot()
		return ok
	case "unlink":
		must(r.t, r.procs[0].Unlink(dirFD(r.t, r.procs[0]), nameOf("run").lock()))
		must(r.t, r.procs[0].a.dir.Sync())
		return ok
	case "restore":
		f, err := r.procs[0].a.stage(r.copied)
		must(r.t, err)
		must(r.t, f.Replace(nameOf("run").state()))
		must(r.t, r.procs[0].a.dir.Sync())
		must(r.t, f.Close())
		return ok
	}
	p := r.procs[a.p]
	if a.n == 1 && a.name != "prepare" {
		if a.name == "start" {
			// The last sync of Start: the directory's, after the rename.
			renamed := false
			p.Plan(func(c securedir.Call) securedir.Fault {
				renamed = renamed || (c.Op == "rename" && c.Name == nameOf("run").state())
				if renamed && c.Op == "sync" {
					return securedir.Fault{Kind: securedir.FailBefore, Err: syscall.EIO}
				}
				return securedir.Fault{}
			})
		} else {
			p.failCall("datasync", 1, eio)
		}
	}
	err := r.operate(p, a)
	p.Plan(nil)
	return outcome(err)
}

func (r *replay) operate(p *process, a action) (err error) {
	switch a.name {
	case "start":
		r.leases[a.p], err = p.a.Start(ctx, "run")
	case "suspend":
		var e Envelope
		e, err = suspend(ctx, r.leases[a.p], snap(r.t, "run", 7, snapshot.Suspended))
		if err == nil {
			tg := r.leases[a.p].hold.record.transition
			r.claims[tg] = e
			if tg == 1 {
				r.copied, _, err = p.a.dir.Read(nameOf("run").state(), nil, stateSize)
				must(r.t, err)
			}
		}
	case "resume":
		err = r.leases[a.p].Resume(ctx)
	case "finish":
		_, err = finish(ctx, r.leases[a.p], snap(r.t, "run", 9, snapshot.Completed))
	case "prepare":
		r.moves[a.p], err = p.a.PrepareImport(ctx, r.claims[a.n])
	case "consume":
		err = r.moves[a.p].Consume(ctx)
	case "activate":
		var l *Lease
		if l, err = r.moves[a.p].Activate(ctx); err == nil {
			r.leases[a.p], r.moves[a.p] = l, nil
		}
	case "resolve":
		err = p.a.Resolve(ctx, "run", snapshot.Failed)
	case "close":
		if r.moves[a.p] != nil {
			err = r.moves[a.p].Close()
		} else {
			err = r.leases[a.p].Close()
		}
		r.leases[a.p], r.moves[a.p] = nil, nil
	}
	return err
}

func outcome(err error) string {
	for sentinel, name := range map[error]string{
		ErrBusy: busy, ErrState: state, ErrVerification: unverified, ErrUncertain: uncertain, ErrLost: lost, ErrUnavailable: missing,
	} {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	if err != nil {
		return err.Error()
	}
	return ok
}

// replayPath drives model and code side by side.
func replayPath(t *testing.T, first modelState, path []action) {
	r := newReplay(t)
	defer func() { r.w.reap() }()
	s := first
	for i, a := range path {
		var want string
		s, want = s.next(a)
		if got := r.do(a); got != want {
			t.Fatalf("step %d of %v: got %q, the model says %q", i+1, path, got, want)
		}
		phase := s.visible.phase
		if s.damaged() {
			phase = Damaged
		}
		info, err := r.procs[(a.p+1)%2].a.Inspect(ctx, "run")
		if phase == 0 && errors.Is(err, ErrState) {
			continue
		}
		if err != nil || info.Phase != phase || info.Held != (s.holder() >= 0) {
			t.Fatalf("step %d of %v: %v held %v (%v), the model says %v in %+v", i+1, path, info.Phase, info.Held, err, phase, s)
		}
		if phase != Damaged && phase != Failed && info.Generation != uint64(s.visible.tg) {
			t.Fatalf("step %d of %v: generation %d, the model says %d", i+1, path, info.Generation, s.visible.tg)
		}
	}
}

// Every transition of the two-process model, by the shortest path to it.
func TestModel_EveryTransitionReplayed(t *testing.T) {
	first := firstState(false)
	n, every := 0, 307 // one in so many in an ordinary run
	if os.Getenv("TIDEMARK_LONG") != "" {
		every = 11
	}
	replayed := 0
	states := explore(t, 2, first, func(path []action, a action) {
		if n++; n%every == 0 {
			replayPath(t, first, append(path, a))
			replayed++
		}
	})
	t.Logf("%d states, %d transitions, %d replayed", states, n, replayed)
}

// Every path, whatever states it meets again, up to a depth.
func TestModel_EveryPathReplayed(t *testing.T) {
	depth := 3
	if os.Getenv("TIDEMARK_LONG") != "" {
		depth = 4
	}
	first := firstState(false)
	paths := 0
	var extend func(s modelState, path []action)
	extend = func(s modelState, path []action) {
		end := true
		if len(path) < depth {
			for _, a := range actions(2) {
				if next, out := s.next(a); out != inert {
					end = false
					extend(next, append(path[:len(path):len(path)], a))
				}
			}
		}
		if end {
			paths++
			replayPath(t, first, path)
		}
	}
	extend(first, nil)
	t.Logf("%d paths of depth %d", paths, depth)
}
