package securedir

import (
	"errors"
	"slices"
	"sync"
	"syscall"
)

// SimProcess is a process of a simulated machine: its descriptors and locks end
// with it. It implements System and counts every call.
type SimProcess struct {
	sim   *Sim
	uid   uint32
	umask uint32

	mu    sync.Mutex // guards what follows
	plan  func(Call) Fault
	calls int
	dead  bool
	next  FD
	files map[FD]*simOpen
}

type simOpen struct {
	node *simNode
	walk bool // opened for walking: no reading, no syncing
	read bool // opened for reading only
}

// Call is one system call a simulated process is about to make.
type Call struct {
	N    int    // 1, 2, 3, … over the life of the process
	Op   string // the method
	Name string // the name it works on, if any
}

// Fault is what happens to a call.
type Fault struct {
	Kind FaultKind
	Err  error // of FailBefore, FailAfter and Short
}

// FaultKind is the way a call goes wrong.
type FaultKind uint8

// The ways.
const (
	Healthy    FaultKind = iota
	FailBefore           // no effect, an error
	FailAfter            // the effect, and an error all the same
	Short                // half of a write, and an error for the rest
	KillBefore           // the process dies before the effect
	KillAfter            // the process dies after the effect
	KillShort            // the process dies after half of a write
)

// ErrKilled is what a dead process would see, if it could.
var ErrKilled = errors.New("securedir: simulated process is dead")

// Process starts a process of a user on the machine.
func (s *Sim) Process(uid, umask uint32) *SimProcess {
	return &SimProcess{sim: s, uid: uid, umask: umask, next: 3, files: map[FD]*simOpen{}}
}

// Plan sets what decides about each coming call; nil lets all succeed. It runs
// before the call, holding no lock, so it may let another process act first.
func (p *SimProcess) Plan(plan func(Call) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// Calls is how many calls the process has made.
func (p *SimProcess) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// Kill ends the process: descriptors and locks go, no later call has an effect.
func (p *SimProcess) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill()
}

func (p *SimProcess) kill() {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	p.dead = true
	for fd, o := range p.files {
		o.drop()
		delete(p.files, fd)
	}
}

// OpenFiles is how many descriptors the process holds.
func (p *SimProcess) OpenFiles() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.files)
}

func (o *simOpen) drop() {
	o.node.flock.drop(o)
	for _, l := range o.node.ranges {
		l.drop(o)
	}
}

// fault asks the plan about the next call.
func (p *SimProcess) fault(op, name string) Fault {
	p.mu.Lock()
	p.calls++
	plan, c := p.plan, Call{N: p.calls, Op: op, Name: name}
	p.mu.Unlock()
	if plan == nil {
		return Fault{}
	}
	return plan(c)
}

// do makes a call: act is its effect, and has no effect if it fails.
func (p *SimProcess) do(op, name string, act func() error) error {
	return p.run(p.fault(op, name), act)
}

// run makes a call whose fault is decided.
func (p *SimProcess) run(f Fault, act func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return ErrKilled
	}
	switch f.Kind {
	case FailBefore, Short:
		return f.Err
	case KillBefore, KillShort:
		p.kill()
		return ErrKilled
	case Healthy, FailAfter, KillAfter:
	}
	p.sim.mu.Lock()
	err := act()
	p.sim.mu.Unlock()
	switch f.Kind {
	case FailAfter:
		return f.Err
	case KillAfter:
		p.kill()
		return ErrKilled
	case Healthy, FailBefore, Short, KillBefore, KillShort:
	}
	return err
}

func (p *SimProcess) open(n *simNode, walk bool) FD {
	fd := p.next
	p.next++
	p.files[fd] = &simOpen{node: n, walk: walk}
	return fd
}

func (p *SimProcess) file(fd FD) (*simOpen, error) {
	o, ok := p.files[fd]
	if !ok {
		return nil, syscall.EBADF
	}
	return o, nil
}

func (p *SimProcess) dir(fd FD) (*simNode, error) {
	o, err := p.file(fd)
	if err != nil {
		return nil, err
	}
	if o.node.names == nil {
		return nil, syscall.ENOTDIR
	}
	return o.node, nil
}

// UID is the effective user.
func (p *SimProcess) UID() uint32 { return p.uid }

// Split cuts a path as Unix does.
func (p *SimProcess) Split(path string) (root string, parts []string, err error) {
	return splitPath(path)
}

// Bound has nothing to add to the walk.
func (p *SimProcess) Bound(FD, string) error { return nil }

// Root opens the root directory.
func (p *SimProcess) Root(string) (fd FD, err error) {
	err = p.do("root", "", func() error {
		fd = p.open(p.sim.root, true)
		return nil
	})
	return fd, err
}

// Walk opens a child directory.
func (p *SimProcess) Walk(dir FD, name string) (fd FD, err error) {
	err = p.do("walk", name, func() error {
		d, err := p.dir(dir)
		if err != nil {
			return err
		}
		n, ok := d.names[name]
		if !ok {
			return syscall.ENOENT
		}
		if n.names == nil {
			return syscall.ENOTDIR
		}
		fd = p.open(n, true)
		return nil
	})
	return fd, err
}

// Reopen opens a walked directory for good.
func (p *SimProcess) Reopen(dir FD) (fd FD, err error) {
	err = p.do("reopen", "", func() error {
		d, err := p.dir(dir)
		if err == nil {
			fd = p.open(d, false)
		}
		return err
	})
	return fd, err
}

// Mkdir creates a directory.
func (p *SimProcess) Mkdir(dir FD, name string) error {
	return p.do("mkdir", name, func() error {
		d, err := p.dir(dir)
		if err != nil {
			return err
		}
		if _, taken := d.names[name]; taken {
			return syscall.EEXIST
		}
		p.sim.link(d, name, p.sim.node(Directory, dirMode&^p.umask, p.uid))
		return nil
	})
}

// Open opens or creates a file.
func (p *SimProcess) Open(dir FD, name string, how How) (fd FD, err error) {
	err = p.do("open", name, func() error {
		d, err := p.dir(dir)
		if err != nil {
			return err
		}
		n, taken := d.names[name]
		switch {
		case how == Exclusive && taken:
			return syscall.EEXIST
		case how == Exclusive:
			n = p.sim.node(Regular, fileMode&^p.umask, p.uid)
			p.sim.link(d, name, n)
		case !taken:
			return syscall.ENOENT
		case n.stat.Kind == Other:
			return syscall.ELOOP
		}
		fd = p.open(n, false)
		p.files[fd].read = how == Read
		return nil
	})
	return fd, err
}

// Stat asks the descriptor.
func (p *SimProcess) Stat(fd FD) (st Stat, err error) {
	err = p.do("stat", "", func() error {
		o, err := p.file(fd)
		if err == nil {
			st = o.node.stat
		}
		return err
	})
	return st, err
}

// StatAt asks the name.
func (p *SimProcess) StatAt(dir FD, name string) (st Stat, err error) {
	err = p.do("statat", name, func() error {
		d, err := p.dir(dir)
		if err != nil {
			return err
		}
		n, ok := d.names[name]
		if !ok {
			return syscall.ENOENT
		}
		st = n.stat
		return nil
	})
	return st, err
}

// FileSystem is a local one.
func (p *SimProcess) FileSystem(FD) (f FileSystem, err error) {
	err = p.do("statfs", "", func() error {
		f.Magic = 0xef53
		return nil
	})
	return f, err
}

// Chmod sets the exact mode.
func (p *SimProcess) Chmod(fd FD, mode uint32) error {
	return p.do("chmod", "", func() error {
		o, err := p.file(fd)
		if err != nil {
			return err
		}
		o.node.stat.Mode = mode
		p.sim.effect(simEffect{node: o.node, kind: effectMode, mode: mode})
		return nil
	})
}

// ReadAt reads what is visible.
func (p *SimProcess) ReadAt(fd FD, b []byte, off int64) (n int, err error) {
	err = p.do("read", "", func() error {
		o, err := p.file(fd)
		if err == nil && off < o.node.stat.Size {
			n = copy(b, o.node.data[off:])
		}
		return err
	})
	return n, err
}

// WriteAt changes what is visible.
func (p *SimProcess) WriteAt(fd FD, b []byte, off int64) (int, error) {
	write := func(b []byte) func() error {
		return func() error {
			o, err := p.file(fd)
			if err != nil {
				return err
			}
			if o.read || o.walk {
				return syscall.EBADF
			}
			p.sim.write(o.node, b, off)
			return nil
		}
	}
	f := p.fault("write", "")
	switch f.Kind {
	case Short, KillShort:
		half := Fault{}
		if f.Kind == KillShort {
			half.Kind = KillAfter
		}
		if err := p.run(half, write(b[:len(b)/2])); err != nil {
			return 0, err
		}
		return 0, f.Err
	case Healthy, FailBefore, FailAfter, KillBefore, KillAfter:
	}
	if err := p.run(f, write(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Sync makes a node durable, DataSync its bytes and size.
func (p *SimProcess) Sync(fd FD) error { return p.sync("sync", fd, true) }

// DataSync makes bytes and size durable.
func (p *SimProcess) DataSync(fd FD) error { return p.sync("datasync", fd, false) }

func (p *SimProcess) sync(op string, fd FD, all bool) error {
	f := p.fault(op, "")
	return p.run(Fault{Kind: killOnly(f.Kind)}, func() error {
		o, err := p.file(fd)
		if err != nil {
			return err
		}
		if o.walk {
			return syscall.EBADF
		}
		if f.Err != nil {
			p.sim.doubt(o.node)
			return f.Err
		}
		p.sim.sync(o.node, all)
		return nil
	})
}

func killOnly(k FaultKind) FaultKind {
	switch k {
	case KillBefore, KillAfter:
		return k
	case KillShort:
		return KillBefore
	case Healthy, FailBefore, FailAfter, Short:
	}
	return Healthy
}

// Rename moves a name.
func (p *SimProcess) Rename(dir FD, from, to string, how How) error {
	return p.do("rename", to, func() error {
		d, err := p.dir(dir)
		if err != nil {
			return err
		}
		return p.sim.rename(d, from, to, how)
	})
}

// Unlink removes a file's name.
func (p *SimProcess) Unlink(dir FD, name string) error { return p.remove("unlink", dir, name, Regular) }

// Rmdir removes an empty directory.
func (p *SimProcess) Rmdir(dir FD, name string) error { return p.remove("rmdir", dir, name, Directory) }

func (p *SimProcess) remove(op string, dir FD, name string, kind Kind) error {
	return p.do(op, name, func() error {
		d, err := p.dir(dir)
		if err != nil {
			return err
		}
		return p.sim.unlink(d, name, kind)
	})
}

// Names lists a directory, sorted, so that runs repeat.
func (p *SimProcess) Names(dir FD) (names []string, err error) {
	err = p.do("names", "", func() error {
		d, err := p.dir(dir)
		if err != nil {
			return err
		}
		for name := range d.names {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}

// Flock works on the whole-file lock.
func (p *SimProcess) Flock(fd FD, op Lock) error {
	return p.do("flock", "", func() error {
		o, err := p.file(fd)
		if err != nil {
			return err
		}
		return o.node.flock.take(o, op)
	})
}

// RangeLock works on a one-byte lock.
func (p *SimProcess) RangeLock(fd FD, off int64, op Lock) error {
	return p.do("rangelock", "", func() error {
		o, err := p.file(fd)
		if err != nil {
			return err
		}
		l, ok := o.node.ranges[off]
		if !ok {
			l = &simLock{}
			o.node.ranges[off] = l
		}
		return l.take(o, op)
	})
}

// Close drops the descriptor and its locks.
func (p *SimProcess) Close(fd FD) error {
	f := p.fault("close", "")
	if f.Kind == FailBefore || f.Kind == Short {
		f.Kind = FailAfter // a failed close has closed
	}
	return p.run(f, func() error {
		o, err := p.file(fd)
		if err != nil {
			return err
		}
		o.drop()
		delete(p.files, fd)
		return nil
	})
}
