// Package authority decides who may run a run. It owns one private directory:
// a scope, a keyring, and one state file and one lock file per run. Whoever
// holds a Lease may execute; a signed Envelope carries a suspended run to the
// next holder, who consumes it exactly once. Everything is built so that a
// crash, a full disk, a forged envelope or a second process can make an
// operation fail but can never make two holders of one run.
//
// A run's life is a line of records in its state file, one sector each. The
// newest record is the state. Every transition after Start is one positioned
// write of the next sector and one data sync; Start, and every sixty-fourth
// transition, is a new file, published by rename.
//
// Errors tell what happened to the run. ErrUncertain: perhaps, never try again.
// Everything else: nothing changed. A context ends an operation only while
// nothing has changed.
//
// The boundary is the user: other users cannot read, forge, block or redirect
// anything here, whatever they rename or link. Processes of the same user and
// root are trusted: they can read the keys.
package authority

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/internal/securedir"
)

// Options of Open. The zero value opens an existing directory only.
type Options struct {
	// Create makes the directory and its keys if there are none.
	Create bool
	// ReadOnly is for looking: nothing is locked, swept or written, so it waits
	// for nobody and disturbs nobody. Inspect, Runs, Keys and Verify work;
	// everything that changes a run or a key is ErrState.
	ReadOnly bool
	// AnyFileSystem also accepts network, user-space and unknown file systems,
	// whose locks and syncs may not hold.
	AnyFileSystem bool
	// MaxRuns bounds the runs the directory ever knows; 0 means 131,072.
	MaxRuns int
}

const defaultMaxRuns = 1 << 17

const (
	lockName = "authority.lock"
	keysName = "authority.keys"

	keysOffset = 0 // the byte of authority.lock that guards the keyring
)

// Authority is an open authority directory. Its methods may run concurrently.
// It must be closed; nothing relies on the collector.
type Authority struct {
	dir     *securedir.Dir
	lock    *securedir.File // authority.lock; also what a missing run is read from
	random  io.Reader
	fences  *fences
	maxRuns int
	looking bool // opened ReadOnly

	keysMu sync.RWMutex
	keys   *ring // guarded by keysMu; nil once torn down

	mu      sync.Mutex
	users   int  // operations, leases and imports that need the directory
	closing bool // no new work
	runs    int  // runs known, at least those this process saw
	drained chan struct{}
}

// Open binds an authority directory; an empty path means the user's default
// one. The path must be absolute and clean, without symbolic links. Concurrent
// first opens, of threads or processes, end with one identity. What an earlier
// process left half-made is swept. ErrUnavailable: the directory, its file
// system, its keyring or the way to it is not fit, and nothing was changed;
// ErrRelocated: it is a copy.
func Open(ctx context.Context, path string, o Options) (*Authority, error) {
	sys, err := securedir.Host()
	if err != nil {
		return nil, failed("open", ErrUnavailable, err)
	}
	return open(ctx, environment{sys, rand.Reader, &processFences}, path, o)
}

// environment is what Open takes from the process.
type environment struct {
	sys    securedir.System
	random io.Reader
	fences *fences
}

func open(ctx context.Context, env environment, path string, o Options) (*Authority, error) {
	if o.MaxRuns < 0 || o.ReadOnly && o.Create {
		return nil, fail("open", ErrInvalid)
	}
	if path == "" {
		var err error
		if path, err = defaultPath(); err != nil {
			return nil, failed("open", ErrUnavailable, err)
		}
	}
	dir, err := securedir.Open(ctx, env.sys, path, securedir.Options{
		Create: o.Create, AnyFileSystem: o.AnyFileSystem, Random: env.random,
	})
	if err != nil {
		return nil, failed("open", ErrUnavailable, err)
	}
	a := &Authority{
		dir: dir, random: env.random, fences: env.fences, maxRuns: o.MaxRuns, looking: o.ReadOnly, drained: make(chan struct{}),
	}
	if a.maxRuns == 0 {
		a.maxRuns = defaultMaxRuns
	}
	if err := a.start(ctx, o.Create); err != nil {
		_ = a.teardown() // the reason to fail is err
		return nil, failed("open", ErrUnavailable, err)
	}
	return a, nil
}

// defaultPath is local to the machine, never a roaming or synchronised place.
func defaultPath() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" || runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		switch runtime.GOOS {
		case "darwin":
			base = filepath.Join(home, "Library", "Application Support")
		case "windows":
			base = os.Getenv("LocalAppData")
		default:
			base = filepath.Join(home, ".local", "state")
		}
	}
	return filepath.Join(base, "tidemark", "authority"), nil
}

// start finds or makes the lock file and, alone, sweeps and finds or makes the
// keyring. The directory is synced before anything in it is trusted: whoever
// made it may have died just before.
func (a *Authority) start(ctx context.Context, create bool) error {
	if a.looking {
		return a.look()
	}
	if err := a.openLock(create); err != nil {
		return err
	}
	release, err := a.alone(ctx)
	if err != nil {
		return err
	}
	defer release()
	if _, err := a.dir.Sweep(); err != nil {
		return err
	}
	names, err := a.dir.Names()
	if err != nil {
		return err
	}
	a.runs = countRuns(names)
	if err := a.loadKeys(); err != nil {
		if !create || !errors.Is(err, fs.ErrNotExist) || a.runs > 0 {
			return err
		}
		if err := a.makeKeys(); err != nil {
			return err
		}
	}
	if err := a.dir.Sync(); err != nil {
		return err
	}
	if !a.keys.at(a.dir.Stat()) {
		return fail("open", ErrRelocated)
	}
	return nil
}

// look finds the lock file and the keyring, and takes no lock: a keyring is
// replaced as a whole, and whoever signs syncs what it relies on itself.
func (a *Authority) look() (err error) {
	if a.lock, err = a.dir.Open(lockName, securedir.Read); err != nil {
		return err
	}
	if err := a.loadKeys(); err != nil {
		return err
	}
	if !a.keys.at(a.dir.Stat()) {
		return fail("open", ErrRelocated)
	}
	return nil
}

func (a *Authority) openLock(create bool) error {
	f, err := a.dir.Open(lockName, securedir.ReadWrite)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := a.publish(lockName, make([]byte, stateSize)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		f, err = a.dir.Open(lockName, securedir.ReadWrite)
	}
	a.lock = f
	return err
}

// publish writes a new file, whole and durable before it has its name.
func (a *Authority) publish(name string, content []byte) error {
	f, err := a.stage(content)
	if err != nil {
		return err
	}
	return errors.Join(f.Publish(name), f.Discard())
}

// stage writes a file that has no name yet and makes it durable. Failing here
// has changed nothing.
func (a *Authority) stage(content []byte) (*securedir.File, error) {
	f, err := a.dir.Temp(a.random)
	if err != nil {
		return nil, err
	}
	err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	return f, nil
}

// alone waits, as long as the context allows, until no other process opens the
// directory or changes its keyring.
func (a *Authority) alone(ctx context.Context) (release func(), err error) {
	f, err := a.guard()
	if err != nil {
		return nil, err
	}
	err = wait(ctx, f.Lock)
	if err != nil {
		_ = f.Close() // never locked
		return nil, err
	}
	return func() { _ = f.Close() }, nil // only its lock was used
}

// wait tries a lock until it is free or the context ends.
func wait(ctx context.Context, try func() error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := try(); !errors.Is(err, securedir.ErrLocked) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// guard is a descriptor of its own of authority.lock, for locks of its own.
func (a *Authority) guard() (*securedir.File, error) {
	f, err := a.dir.Open(lockName, securedir.ReadWrite)
	if err != nil {
		return nil, err
	}
	if !f.Stat().Same(a.lock.Stat()) {
		return nil, errors.Join(securedir.ErrChanged, f.Close())
	}
	return f, nil
}

// begin admits work; every begin is followed by one end.
func (a *Authority) begin(ctx context.Context, op string) error {
	if err := live(ctx, op); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		return fail(op, ErrClosed)
	}
	a.users++
	return nil
}

// beginChange is begin for what changes something.
func (a *Authority) beginChange(ctx context.Context, op string) error {
	if a.looking {
		return fail(op, ErrState)
	}
	return a.begin(ctx, op)
}

// end lets the last one out close the door.
func (a *Authority) end() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.users--
	return a.settle()
}

// settle tears down once nothing needs the directory. a.mu is held.
func (a *Authority) settle() error {
	if !a.closing || a.users > 0 {
		return nil
	}
	select {
	case <-a.drained:
		return nil
	default:
	}
	defer close(a.drained)
	return a.teardown()
}

// teardown clears the keys and releases the directory.
func (a *Authority) teardown() error {
	a.keysMu.Lock()
	if a.keys != nil {
		a.keys.secret.Destroy()
		a.keys = nil
	}
	a.keysMu.Unlock()
	var err error
	if a.lock != nil {
		err = a.lock.Close()
	}
	return errors.Join(err, a.dir.Close())
}

// Close refuses new work from now on. ErrBusy: leases, imports or operations
// are alive; the last of them to end releases the directory and clears the
// keys. Further calls are nil once that has happened.
func (a *Authority) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closing = true
	if a.users > 0 {
		return fail("close", ErrBusy)
	}
	if err := a.settle(); err != nil {
		return failed("close", ErrUnavailable, err)
	}
	return nil
}

// Drain is Close that waits for the last lease, import and operation to end, as
// long as the context allows.
func (a *Authority) Drain(ctx context.Context) error {
	if err := a.Close(); err == nil || !errors.Is(err, ErrBusy) {
		return err
	}
	select {
	case <-a.drained:
		return nil
	case <-ctx.Done():
		return live(ctx, "drain")
	}
}

// String redacts.
func (a *Authority) String() string { return "[authority]" }

// GoString redacts.
func (a *Authority) GoString() string { return "[authority]" }

// fences remembers the runs whose outcome became uncertain in this process:
// what its page cache shows of them proves nothing, so it never touches them
// again. One process has one.
type fences struct {
	mu  sync.Mutex
	set map[fence]bool
}

// fence is a run by the identity of its directory, so that another Authority
// on the same directory meets it too.
type fence struct {
	device, inode uint64
	name          runName
}

var processFences fences

func (f *fences) add(k fence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set == nil {
		f.set = map[fence]bool{}
	}
	f.set[k] = true
}

func (f *fences) has(k fence) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set[k]
}

func (a *Authority) fenceOf(n runName) fence {
	st := a.dir.Stat()
	return fence{st.Device, st.Inode, n}
}

func (a *Authority) fenced(n runName) bool { return a.fences.has(a.fenceOf(n)) }
