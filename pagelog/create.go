package pagelog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// CreateIn is Create in a given world; see Env.
func CreateIn(env Env, name string, c CreateOptions, o Options) (*Log, error) {
	id, err := c.identity()
	if err != nil {
		return nil, err
	}
	if o, err = o.validate(); err != nil {
		return nil, err
	}
	env = env.withDefaults()
	fileSystem, err := admit(env.Dir, o.AllowAnyFileSystem)
	if err != nil {
		return nil, err
	}
	if err := draw(&id, env); err != nil {
		return nil, err
	}
	if err := sweep(env.Dir, name); err != nil {
		return nil, err
	}
	f, err := publish(env, name, &id)
	if err != nil {
		return nil, err
	}
	log, err := openLocked(env, f, o, fileSystem)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return log, nil
}

// draw fills in what is random or asks the clock.
func draw(id *frame.Identity, env Env) error {
	var b [40]byte
	if _, err := io.ReadFull(env.Random, b[:]); err != nil {
		return fmt.Errorf("draw a log ID: %w", err)
	}
	id.LogID = [16]byte(b[:16])
	id.IndexKey = [16]byte(b[16:32])
	for _, c := range b[32:] {
		id.Salt = id.Salt<<8 | uint64(c)
	}
	id.Created = env.Now()
	if err := id.Validate(); err != nil {
		return fmt.Errorf("new identity: %w", err)
	}
	return nil
}

// publish writes a whole empty log under a temporary name and gives it its own
// in one step that never replaces: a crash leaves no log or a whole one.
func publish(env Env, name string, id *frame.Identity) (disk.File, error) {
	f, temp, err := createTemp(env, name)
	if err != nil {
		return nil, noSpace("create a temporary file", err)
	}
	err = writeEmpty(f, id, env.Now())
	if err == nil {
		err = env.Dir.Publish(f, name)
	}
	if err != nil {
		return nil, errors.Join(noSpace("create "+name, err), f.Close(), env.Dir.Remove(temp))
	}
	if err := env.Dir.Sync(); err != nil {
		return nil, errors.Join(fmt.Errorf("sync the directory of %s: %w", name, err), f.Close())
	}
	return f, nil
}

// createTemp makes a temporary file and locks it. Before it is locked, another
// creation of the same name may take it for left over and sweep it away; then
// it is made again.
func createTemp(env Env, name string) (f disk.File, temp string, err error) {
	for {
		var b [8]byte
		if _, err := io.ReadFull(env.Random, b[:]); err != nil {
			return nil, "", fmt.Errorf("draw a temporary name: %w", err)
		}
		temp = tempPrefix(name) + hex.EncodeToString(b[:])
		if f, err = env.Dir.Create(temp); err != nil {
			return nil, "", err
		}
		err = f.Lock()
		named := false
		if err == nil {
			_, named, err = f.Named()
		}
		if err == nil && named {
			return f, temp, nil
		}
		if cerr := f.Close(); cerr != nil || err != nil && !errors.Is(err, disk.ErrLocked) {
			return nil, "", errors.Join(err, cerr)
		}
	}
}

// writeEmpty makes f an empty log.
func writeEmpty(f disk.File, id *frame.Identity, now int64) error {
	g := id.Geometry()
	area := make([]byte, g.HeaderArea())
	one := id.Encode()
	copy(area[frame.IdentityOffset:], one)
	copy(area[frame.IdentityCopyOffset:], one)
	begin := frame.Place{Offset: g.HeaderArea(), Revision: id.Base.Revision, Digest: id.Base.Digest}
	g.PutSlot(area[frame.SlotOffsetA:], frame.SlotOffsetA, &frame.Slot{Number: 1, Durable: begin, Floor: begin, Generation: 1, Time: now})
	if _, err := f.WriteAt(area, 0); err != nil {
		return err
	}
	return f.Sync()
}

func tempPrefix(name string) string { return "." + name + ".tmp-" }

// isTemp reports whether n is a name that createTemp gives: the prefix and 16
// hexadecimal digits.
func isTemp(n, name string) bool {
	digits, ok := strings.CutPrefix(n, tempPrefix(name))
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == 16
}

// sweep removes what creations of this name left behind when they were killed.
// A temporary file whose creator lives is locked, and stays.
func sweep(dir disk.Dir, name string) error {
	names, err := dir.Names()
	if err != nil {
		return fmt.Errorf("list the directory of %s: %w", name, err)
	}
	for _, n := range names {
		if !isTemp(n, name) {
			continue
		}
		f, err := dir.Open(n, disk.ReadWrite)
		if err != nil {
			continue // gone by now, or not ours
		}
		if f.Lock() == nil {
			if err := dir.Remove(n); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return errors.Join(fmt.Errorf("remove left-over %s: %w", n, err), f.Close())
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// noSpace says ErrNoSpace in the engine's words, and adds what was going on.
func noSpace(doing string, err error) error {
	if errors.Is(err, disk.ErrNoSpace) {
		return fmt.Errorf("%s: %w: %w", doing, ErrNoSpace, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
