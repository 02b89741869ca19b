package authority

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/snapshot"
)

// forgeries are envelopes that must not be believed, by what is wrong.
func forgeries(e Envelope) map[string]Envelope {
	out := map[string]Envelope{}
	for name, change := range map[string]func(*Envelope){
		"unknown scope":          func(f *Envelope) { f.claim.Scope[3] ^= 1 },
		"unavailable generation": func(f *Envelope) { f.claim.Generation = 77 },
		"bad MAC":                func(f *Envelope) { f.claim.MAC[31] ^= 1 },
		"unknown run":            func(f *Envelope) { f.head.runID = "never" },
	} {
		f := e
		change(&f)
		out[name] = f
	}
	return out
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// T20, R56, R73: every reason not to believe is one error: the same text, the
// same sentinels, whether the run is held, free, unknown, consumed or damaged.
func TestT20_FailuresAreIndistinguishable(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("run")
	p, q := w.boot(), w.boot()
	all := forgeries(e)
	for name, change := range map[string]func(*Envelope){
		"altered payload":   func(f *Envelope) { f.payload = append(bytes.Clone(f.payload[1:]), 1) },
		"altered digest":    func(f *Envelope) { f.head.payload[0] ^= 1 },
		"altered sequence":  func(f *Envelope) { f.head.sequence++ },
		"altered lifecycle": func(f *Envelope) { f.head.lifecycle = snapshot.Failed },
		"all altered":       func(f *Envelope) { f.claim = Claim{Generation: 5} },
	} {
		f := e
		change(&f)
		all[name] = f
	}
	check := func(state string) {
		t.Helper()
		for name, f := range all {
			_, err := q.a.PrepareImport(ctx, f)
			_, verr := q.a.Verify(ctx, f)
			for _, err := range []error{err, verr} {
				if err != ErrVerification || err.Error() != "authority: verification failed" {
					t.Errorf("%s, %s: %v", state, name, err)
				}
			}
		}
	}
	check("free")
	i, err := p.a.PrepareImport(ctx, e)
	must(t, err)
	check("held")
	must(t, i.Consume(ctx))
	all["consumed"] = e
	check("consumed")
	corrupt(t, p, "run")
	check("damaged")
	unlink(t, p, nameOf("run").state())
	check("no state file")
	foreign := newWorld(t)
	all = map[string]Envelope{"R59: another directory": foreign.suspended("run")}
	check("foreign")
}

func TestT10_NetworkFileSystemsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.process()
	for _, magic := range []uint32{0x6969, 0xfe534d42, 0x65735546, 0x01021997, 0x12345} {
		p.env.sys = elsewhere{p.SimProcess, magic}
		_, err := open(ctx, p.env, testPath, Options{Create: true})
		var e *Error
		if !errors.As(err, &e) || e.Class != "file system" || !errors.Is(err, ErrUnavailable) {
			t.Errorf("%x: %v", magic, err)
		}
		a, err := open(ctx, p.env, testPath, Options{Create: true, AnyFileSystem: true})
		must(t, err)
		must(t, a.Close())
	}
}

type elsewhere struct {
	securedir.System
	magic uint32
}

func (e elsewhere) FileSystem(securedir.FD) (securedir.FileSystem, error) {
	return securedir.FileSystem{Magic: e.magic}, nil
}

// T12: the data sync fails once and works afterwards: uncertain for ever in
// this process, for every operation and every Authority in it.
func TestT12_R72_OneFailedSyncIsForEver(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	cycle(t, l, 7)
	p.failCall("datasync", 1, eio)
	wantErr(t, l.Resume(ctx), ErrUncertain)
	calls := p.Calls()
	for range 3 {
		wantErr(t, l.Resume(ctx), ErrUncertain)
		_, err = suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
		wantErr(t, err, ErrUncertain)
	}
	if p.Calls() != calls {
		t.Error("the system was asked again")
	}
	wantErr(t, l.Close(), ErrUncertain)
	second := &process{SimProcess: p.SimProcess, env: p.env}
	must(t, second.open())
	for _, a := range []*Authority{p.a, second.a} {
		_, err = a.Start(ctx, "run")
		wantErr(t, err, ErrUncertain)
		wantErr(t, a.Resolve(ctx, "run", snapshot.Failed), ErrUncertain)
		info, err := a.Inspect(ctx, "run")
		if must(t, err); !info.Uncertain {
			t.Error("not marked")
		}
	}
	must(t, second.a.Close())
	q := w.boot()
	must(t, q.a.Resolve(ctx, "run", snapshot.Failed))
}

// T12: a genuine claim of a fenced run is uncertain, a forged one learns nothing.
func TestT12_FencedRunAndItsClaim(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("run")
	p := w.boot()
	i, err := p.a.PrepareImport(ctx, e)
	must(t, err)
	p.failCall("write", 1, eio) // before anything is written: the record stays
	wantErr(t, i.Consume(ctx), ErrUncertain)
	p.Plan(nil)
	wantErr(t, i.Close(), ErrUncertain)
	_, err = p.a.PrepareImport(ctx, e)
	wantErr(t, err, ErrUncertain)
	_, err = p.a.Verify(ctx, e)
	wantErr(t, err, ErrUncertain)
	for name, f := range forgeries(e) {
		if _, err := p.a.Verify(ctx, f); err != ErrVerification {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// T13: power lost before any sync the process did not make: keys and tombstones
// of acknowledged operations are there.
func TestT13_KeysAndTombstonesSurvive(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	scope := p.a.keys.scope
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	done, err := finish(ctx, l, snap(t, "run", 7, snapshot.Completed))
	must(t, err)
	after := &world{t: t, sim: w.sim.PowerCut(func(int) securedir.Fate { return securedir.Lost })}
	defer after.reap()
	q := after.boot()
	if !equal(q.a.keys.scope, scope) {
		t.Error("another identity")
	}
	if _, err := q.a.Verify(ctx, done); err != nil {
		t.Errorf("tombstone: %v", err)
	}
	_, err = q.a.Start(ctx, "run")
	wantErr(t, err, ErrState)
}

// T17: every way a full, exhausted or read-only system says no, at every step of
// Start: before the commit step nothing changed and the class tells.
func TestT17_EveryRefusalAtEveryStep(t *testing.T) {
	classes := map[syscall.Errno]string{
		syscall.ENOSPC: "full", syscall.EDQUOT: "full", syscall.EFBIG: "full",
		syscall.EMFILE: "too many files", syscall.EROFS: "read-only", syscall.EACCES: "permission",
	}
	for errno, class := range classes {
		for n := 1; ; n++ {
			w := newWorld(t)
			p := w.boot()
			base, op := p.Calls(), ""
			p.Plan(func(c securedir.Call) securedir.Fault {
				if c.N-base == n {
					op = c.Op
					return securedir.Fault{Kind: securedir.FailBefore, Err: errno}
				}
				return securedir.Fault{}
			})
			l, err := p.a.Start(ctx, "run")
			p.Plan(nil)
			if err == nil {
				must(t, l.Close())
				w.reap()
				if op == "" {
					break
				}
				continue // a call whose failure does no harm
			}
			var e *Error
			if !errors.As(err, &e) || e.Class != class {
				t.Errorf("%v at call %d (%s): %v", errno, n, op, err)
			}
			if !errors.Is(err, ErrUncertain) {
				l, err := p.a.Start(ctx, "run")
				if err != nil {
					t.Errorf("%v at call %d (%s): repeated: %v", errno, n, op, err)
				} else {
					must(t, l.Close())
				}
			}
			w.reap()
		}
	}
}

// T18: records hold no time: the same randomness gives the same bytes, whenever,
// and nothing here asks the clock for a time.
func TestT18_RecordsHoldNoTime(t *testing.T) {
	bytesOfRun := func() []byte {
		w := newWorld(t)
		p := w.process()
		p.env.random = new(counter)
		must(t, p.open())
		l, err := p.a.Start(ctx, "run")
		must(t, err)
		_, err = suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
		must(t, err)
		b, _, err := p.a.dir.Read(nameOf("run").state(), nil, stateSize)
		must(t, err)
		return b
	}
	if !bytes.Equal(bytesOfRun(), bytesOfRun()) {
		t.Error("two runs with the same randomness differ")
	}
	entries, err := os.ReadDir(".")
	must(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		b, err := os.ReadFile(e.Name())
		must(t, err)
		for _, call := range []string{"time.Now", "time.Since", "time.Until", "time.Sleep"} {
			if bytes.Contains(b, []byte(call)) {
				t.Errorf("%s uses %s", e.Name(), call)
			}
		}
	}
}

func TestR112_Quota(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	p.a.maxRuns = 3
	q := w.boot()
	q.a.maxRuns = 3
	for n := range 3 {
		l, err := p.a.Start(ctx, fmt.Sprint("run ", n))
		must(t, err)
		must(t, l.Close())
	}
	before := names(t, p.a)
	_, err := p.a.Start(ctx, "run 3")
	wantErr(t, err, ErrCapacity)
	if after := names(t, p.a); !slices.Equal(before, after) {
		t.Errorf("created %v", after)
	}
	q = w.boot() // counted at Open
	q.a.maxRuns = 3
	_, err = q.a.Start(ctx, "run 3")
	wantErr(t, err, ErrCapacity)
	_, err = open(ctx, q.env, testPath, Options{MaxRuns: -1})
	wantErr(t, err, ErrInvalid)
}

// R81 to R84: closing waits for nobody, refuses new work, and the last lease out
// releases everything and clears the keys.
func TestR81_CloseAndDrain(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("other")
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	i, err := p.a.PrepareImport(ctx, e)
	must(t, err)
	secret := p.a.keys.secret
	for range 2 {
		wantErr(t, p.a.Close(), ErrBusy)
	}
	_, err = p.a.Start(ctx, "run 2")
	wantErr(t, err, ErrClosed)
	_, err = p.a.PrepareImport(ctx, e)
	wantErr(t, err, ErrClosed)
	_, err = p.a.Verify(ctx, e)
	wantErr(t, err, ErrClosed)
	_, err = p.a.Inspect(ctx, "run")
	wantErr(t, err, ErrClosed)
	for _, err := range p.a.Runs(ctx) {
		wantErr(t, err, ErrClosed)
	}
	_, err = suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended)) // a live lease goes on
	must(t, err)
	drained := make(chan error)
	go func() { drained <- p.a.Drain(ctx) }()
	must(t, i.Abort())
	must(t, l.Close())
	must(t, <-drained)
	for range 2 {
		must(t, p.a.Close())
		must(t, p.a.Drain(ctx))
	}
	if p.a.keys != nil || secret.Bytes() != nil {
		t.Error("R83: the keys are still there")
	}
	if n := p.OpenFiles(); n != 0 {
		t.Errorf("R82: %d descriptors left", n)
	}
}

// R84, R101: everything at once, under the race detector.
func TestR101_ConcurrentUse(t *testing.T) {
	w := newWorld(t)
	p, q := w.boot(), w.boot()
	var wg sync.WaitGroup
	var mu sync.Mutex
	owners := map[string]int{}
	for g := range 8 {
		a := []*Authority{p.a, q.a}[g%2]
		wg.Go(func() {
			for n := range 20 {
				id := fmt.Sprint("run ", n)
				l, err := a.Start(ctx, id)
				if err != nil {
					if !errors.Is(err, ErrBusy) && !errors.Is(err, ErrState) {
						t.Errorf("start: %v", err)
					}
					continue
				}
				mu.Lock()
				owners[id]++
				mu.Unlock()
				if _, err := suspend(ctx, l, snap(t, id, 7, snapshot.Suspended)); err != nil {
					t.Errorf("suspend: %v", err)
				}
				go func() { _, _ = l.Token() }()
				go func() { _ = l.Close() }()
				if err := l.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				if g == 0 && n%5 == 0 {
					if _, err := a.RotateKey(ctx); err != nil {
						t.Errorf("rotate: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	for range 4 {
		wg.Go(func() { _ = p.a.Close() })
		wg.Go(func() {
			if err := q.a.Drain(ctx); err != nil {
				t.Errorf("drain: %v", err)
			}
		})
	}
	wg.Wait()
	if p.OpenFiles() != 0 || q.OpenFiles() != 0 {
		t.Errorf("descriptors left: %d, %d", p.OpenFiles(), q.OpenFiles())
	}
	for id, n := range owners {
		if n != 1 {
			t.Errorf("R29: %s had %d owners", id, n)
		}
	}
}

// R86, R87: nothing prints a key, a path, an error number or a payload.
func TestR86_R87_Redaction(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "secret-run")
	must(t, err)
	e, err := suspend(ctx, l, snap(t, "secret-run", 7, snapshot.Suspended))
	must(t, err)
	must(t, l.Close())
	i, err := p.a.PrepareImport(ctx, e)
	must(t, err)
	key, _ := p.a.keys.key(1)
	for _, v := range []any{p.a, l, i, e, e.Claim(), p.a.keys.secret} {
		for _, s := range []string{fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%s", v)} {
			if len(s) > 20 || strings.Contains(s, string(key)) || strings.Contains(s, "hello") {
				t.Errorf("%T prints %q", v, s)
			}
		}
	}
	must(t, i.Close())
	for _, cause := range []error{
		&fs.PathError{Op: "open", Path: "/secret/path", Err: syscall.EMFILE}, syscall.EIO, syscall.EACCES, securedir.ErrUnsafe,
	} {
		err := failed("start", ErrUnavailable, cause)
		var errno syscall.Errno
		var path *fs.PathError
		if errors.As(err, &errno) || errors.As(err, &path) || errors.Is(err, cause) ||
			strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("%v carries its cause", err)
		}
	}
}

// R88: randomness and writers that fail are contained.
func TestR88_FailingRandomness(t *testing.T) {
	w := newWorld(t)
	p := w.process()
	for after := 0; ; after++ {
		p.env.random = &failing{after: after}
		a, err := open(ctx, p.env, testPath, Options{Create: true})
		if err != nil {
			wantErr(t, err, ErrUnavailable)
			continue
		}
		must(t, a.Close())
		break
	}
	p.env.random = &failing{after: 1 << 30}
	a, err := open(ctx, p.env, testPath, Options{})
	must(t, err)
	for after := 0; ; after++ {
		a.random = &failing{after: after}
		l, err := a.Start(ctx, "run")
		if err == nil {
			must(t, l.Close())
			break
		}
		wantErr(t, err, ErrUnavailable)
	}
	a.random = &failing{}
	_, err = a.RotateKey(ctx)
	wantErr(t, err, ErrUnavailable)
	must(t, a.Close())
}

type failing struct {
	after int
	counter
}

func (f *failing) Read(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errors.New("no randomness")
	}
	return f.counter.Read(p)
}

// R52, R89: what a caller can reach signs nothing by itself.
func TestR52_R89_NoExportedSigner(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[*Authority](), reflect.TypeFor[*Lease](), reflect.TypeFor[*Import](), reflect.TypeFor[Envelope](), reflect.TypeFor[Claim]()} {
		for m := range typ.Methods() {
			for i := 1; i < m.Type.NumIn(); i++ { // after the receiver
				in := m.Type.In(i)
				if in.Kind() == reflect.Array || in == reflect.TypeFor[[]byte]() || in == reflect.TypeFor[Claim]() {
					t.Errorf("%s.%s takes raw material", typ, m.Name)
				}
			}
		}
	}
	for f := range reflect.TypeFor[Envelope]().Fields() {
		if f.IsExported() {
			t.Errorf("Envelope.%s can be set", f.Name)
		}
	}
}

func TestR66_TokenMovesForward(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	first, err := l.Token()
	must(t, err)
	cycle(t, l, 7)
	cycle(t, l, 7)
	second, err := l.Token()
	must(t, err)
	if second.Token != first.Token+1 || second.Run != first.Run || first.Run == [32]byte{} || first.Token == 0 {
		t.Errorf("%+v then %+v", first, second)
	}
	must(t, l.Close())
	_, err = l.Token()
	wantErr(t, err, ErrClosed)
}

// A claim over a header that its payload contradicts is refused, even signed.
func TestR73_HeaderMustMatchThePayload(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	s := snap(t, "run", 9, snapshot.Suspended)
	e := Envelope{head: headerOf(s), payload: s.Encoding()}
	e.head.sequence = 8
	must(t, l.hold.commit(ctx, "suspend", l.hold.successor(Suspended), func(r *ring, next *record) {
		e.claim = Claim{Scope: r.scope, Generation: next.generation}
		e.claim.MAC, _ = r.claimMAC(next.generation, next.transition, e.head)
		next.claim = recordClaim{snapshot.Suspended, 8, next.generation, snapshot.Format, e.head.payload, e.claim.MAC}
	}))
	if _, err := p.a.Verify(ctx, e); err != ErrVerification {
		t.Errorf("%v", err)
	}
	e.payload = append(e.payload, 0)
	if _, err := p.a.Verify(ctx, e); err != ErrVerification {
		t.Errorf("%v", err)
	}
}
