package pagelog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// Env is the world a log lives in. Hosts never need it: Create, Open and
// OpenReader take the operating system's. Tests give a simulated one.
type Env struct {
	Dir    disk.Dir      // where the log is
	Random io.Reader     // nil: the system's
	Now    func() int64  // nanoseconds since 1970; advisory; nil: the system's
	Idle   time.Duration // idleness after which a slot is written; 0: 5 ms; negative: never
}

func (e Env) withDefaults() Env {
	if e.Random == nil {
		e.Random = rand.Reader
	}
	if e.Now == nil {
		e.Now = func() int64 { return time.Now().UnixNano() }
	}
	if e.Idle == 0 {
		e.Idle = 5 * time.Millisecond
	}
	return e
}

// Create makes a new log at path and opens it for writing, as Open does. A
// crash leaves no log or a whole one. The error is fs.ErrExist if the name is
// taken.
func Create(path string, c CreateOptions, o Options) (*Log, error) {
	var log *Log
	err := inDir(path, func(env Env, name string) (err error) {
		log, err = CreateIn(env, name, c, o)
		return err
	})
	return log, err
}

// Open opens the log at path for writing: it locks it, recovers it and makes
// what it found durable before it returns. Log.Report says what it did.
//
// Errors: ErrLocked, ErrCorrupt, ErrDiverged, ErrLostCommits, ErrCompacted,
// ErrUnsupported, ErrNotALog, ErrFileSystem, ErrFenced, fs.ErrNotExist,
// fs.ErrPermission. After any of them but an error of writing the file is unchanged.
func Open(path string, o Options) (*Log, error) {
	var log *Log
	err := inDir(path, func(env Env, name string) (err error) {
		log, err = OpenIn(env, name, o)
		return err
	})
	return log, err
}

// inDir runs do in the directory of path and names the path in its error.
func inDir(path string, do func(env Env, name string) error) error {
	name := filepath.Base(path)
	if name == "." || name == ".." || name == string(filepath.Separator) {
		return fmt.Errorf("%s: %w: a log is a file", path, ErrNotALog)
	}
	dir, err := disk.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := do(Env{Dir: dir}, name); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), dir.Close())
	}
	return nil
}

// OpenIn is Open in a given world; see Env.
func OpenIn(env Env, name string, o Options) (*Log, error) {
	o, err := o.validate()
	if err != nil {
		return nil, err
	}
	env = env.withDefaults()
	fileSystem, err := admit(env.Dir, o.AllowAnyFileSystem)
	if err != nil {
		return nil, err
	}
	f, err := openNamed(env.Dir, name, disk.ReadWrite)
	if err != nil {
		return nil, err
	}
	log, err := lockAndOpen(env, f, o, fileSystem)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return log, nil
}

func lockAndOpen(env Env, f disk.File, o Options, fileSystem disk.FileSystem) (*Log, error) {
	if err := f.Lock(); errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("%w: wait for it to end, or read the log without writing", ErrLocked)
	} else if err != nil {
		return nil, err
	}
	_, named, err := f.Named()
	if err != nil {
		return nil, err
	}
	if !named {
		return nil, fmt.Errorf("%w while it was opened", ErrReplaced)
	}
	return openLocked(env, f, o, fileSystem)
}

// openLocked opens the log in f, which is locked and has its name.
func openLocked(env Env, f disk.File, o Options, fileSystem disk.FileSystem) (*Log, error) {
	// The log's creator may have died before it did this.
	if err := env.Dir.Sync(); err != nil {
		return nil, fmt.Errorf("sync the directory: %w", err)
	}
	h, err := readHeader(f)
	if err != nil {
		return nil, err
	}
	if err := h.mayWrite(); err != nil {
		return nil, err
	}
	r, err := recoverLog(f, h, o.Expect)
	if err != nil {
		return nil, err
	}
	l := newLog(env, f, h, o)
	l.zeroAhead = o.ZeroAhead == ZeroAheadOn || o.ZeroAhead == ZeroAheadAuto && !fileSystem.CopyOnWrite
	if _, err := io.ReadFull(env.Random, l.slots.cur.Writer[:]); err != nil {
		return nil, fmt.Errorf("draw an incarnation: %w", err)
	}
	if err := l.fence(r); err != nil {
		return nil, err
	}
	if err := r.settle(&l.slots); err != nil {
		return nil, err
	}
	l.watchFence()
	l.start(r)
	if err := l.resumeRetention(); err != nil {
		return nil, fmt.Errorf("finish the retention that was begun: %w", err)
	}
	l.startIdle()
	if o.Logger != nil {
		o.Logger.Info("log opened", "head", l.report.Head, "epoch", l.report.Epoch,
			"torn", l.report.Torn, "rewritten", l.report.Rewritten, "bridged", len(l.report.Bridged))
	}
	return l, nil
}

// admit refuses places where locks and syncs may not mean what they must.
func admit(dir disk.Dir, anyFileSystem bool) (disk.FileSystem, error) {
	fileSystem, err := dir.FileSystem()
	if err != nil {
		return fileSystem, fmt.Errorf("ask for the file system: %w", err)
	}
	if fileSystem.Network && !anyFileSystem {
		return fileSystem, fmt.Errorf("%w: %s is a network or user-space file system, whose locks and syncs may not hold; "+
			"move the log to a local disk, or allow it by option", ErrFileSystem, fileSystem.Name)
	}
	return fileSystem, nil
}

func openNamed(dir disk.Dir, name string, access disk.Access) (disk.File, error) {
	f, err := dir.Open(name, access)
	if errors.Is(err, disk.ErrNotRegular) {
		return nil, fmt.Errorf("%w: %w", ErrNotALog, err)
	}
	return f, err
}
