package pagelog

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/invariant"
)

// Reader reads a log, also beside a live writer in another process. It never
// writes and never locks. All methods may run concurrently; a Group belongs to
// one goroutine at a time.
//
// A Reader never goes back in revision: if the file turns out to hold another
// history than the one it has read, every later call fails with ErrDiverged or
// ErrReplaced.
type Reader struct {
	file disk.File
	dir  disk.Dir
	name string
	next atomic.Pointer[Reader] // of the file that superseded this one, if one did
	id   *frame.Identity
	geo  *frame.Geometry
	opts ReaderOptions
	live *Log // the writer in this process; nil: another one's, or none

	directory directory
	lookups   lookups

	mu    sync.Mutex
	view  view  // what was last seen of the file; not used for a live log
	begin point // where history begins in this file
	gone  error // why this reader is of no more use
}

// OpenReader opens the log at path for reading. Errors: ErrNotALog,
// ErrUnsupported, ErrFileSystem, fs.ErrNotExist, fs.ErrPermission. Damage is
// found by reading, not by opening.
func OpenReader(path string, o ReaderOptions) (*Reader, error) {
	var r *Reader
	err := inDir(path, func(env Env, name string) (err error) {
		r, err = OpenReaderIn(env, name, o)
		return err
	})
	return r, err
}

// OpenReaderIn is OpenReader in a given world; see Env.
func OpenReaderIn(env Env, name string, o ReaderOptions) (*Reader, error) {
	if _, err := admit(env.Dir, o.AllowAnyFileSystem); err != nil {
		return nil, err
	}
	f, err := openNamed(env.Dir, name, disk.ReadOnly)
	if err != nil {
		return nil, err
	}
	h, err := readHeader(f)
	if err == nil {
		err = h.mayRead()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r := &Reader{file: f, dir: env.Dir, name: name, id: &h.id, geo: h.geo, opts: o, begin: h.begin()}
	r.view.header = h
	return r, nil
}

// Close releases the file. Calls under way may fail.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.gone, ErrClosed) {
		return ErrClosed
	}
	r.gone = ErrClosed
	if r.live != nil { // the file is the log's
		return nil
	}
	if next := r.next.Load(); next != nil { // this one's file is closed
		return errors.Join(next.Close(), r.dir.Close())
	}
	return errors.Join(r.file.Close(), r.dir.Close())
}

// Group is a commit as a reader sees it.
type Group struct {
	Commit
	Time time.Time // when it was written, by the writer's clock: advisory

	start, end int64
	body       []byte
	limit      int64
	scratch    []byte
	walk       walker
	header     frame.GroupHeader
}

// Offset returns where the commit lies in this file: a hint for AtHint.
func (g *Group) Offset() int64 { return g.start }

// Records iterates the records of the commit in order. Data is valid until the
// group's next use: copy what must live longer. An error concerns that one
// record, which a newer version compressed or flagged; its stored bytes are
// sound.
func (g *Group) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		stored, rest, ok := frame.NextRecord(g.body)
		for ok && yield(g.decode(&stored)) {
			stored, rest, ok = frame.NextRecord(rest)
		}
	}
}

// decode turns a record as it is stored into what a host sees.
func (g *Group) decode(stored *frame.Record) (Record, error) {
	data, err := stored.Payload(g.scratch[:0], g.limit)
	switch {
	case errors.Is(err, frame.ErrUnsupported):
		err = fmt.Errorf("%w: record flags %#x of revision %d", ErrUnsupported, stored.Flags, g.Revision)
	case err == nil && stored.Codec() != frame.Plain:
		g.scratch = data
	}
	return Record{Kind: stored.Kind, Required: stored.Flags&frame.FlagRequired != 0, Codec: stored.Codec(), Data: data}, err
}

// Cursor returns the cursor that says everything up to this commit was
// delivered. Issue it after the commit was handled, not before.
func (r *Reader) Cursor(c Commit) cursor.Cursor {
	return cursor.Cursor{Position: cursor.Position{Log: r.LogID(), Revision: c.Revision}, Digest: c.Digest}
}

// LogID returns the identity of the log.
func (r *Reader) LogID() cursor.LogID { return r.id.LogID }

// Head returns the last complete commit, or the last durable one of a Durable
// reader. It looks at the file. With damage before the head it returns the
// sound prefix's last commit and the ErrCorrupt.
func (r *Reader) Head() (Commit, error) { return ask(r, (*Reader).head) }

func (r *Reader) head() (Commit, error) {
	b, err := r.bounds()
	if err != nil {
		return Commit{}, err
	}
	return Commit{Revision: b.stop.rev, Digest: cursor.Digest(b.stop.digest), Durable: b.stop.end <= b.proven}, b.damage
}

// Oldest returns the first revision that the log still has, or will have.
func (r *Reader) Oldest() uint64 { return r.oldest().rev + 1 }

func (r *Reader) oldest() point {
	r = r.now()
	if r.live != nil && r != r.live.Reader {
		return r.live.oldest()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begin
}

// Commits iterates the commits after a revision, oldest first, up to the head
// at the time of the call; Oldest() - 1 begins with the oldest. A group is valid until
// the next one is yielded. Errors end the iteration: ErrCompacted if commits
// after that revision were dropped, ErrNotFound if the revision lies beyond the
// head, ErrCorrupt behind the sound prefix.
func (r *Reader) Commits(after uint64) iter.Seq2[*Group, error] {
	return func(yield func(*Group, error) bool) {
		r := r.now()
		hold, err := r.hold(after)
		defer r.letGo(hold)
		var b bounds
		if err == nil {
			b, err = r.bounds()
		}
		if err == nil {
			var g *Group
			for g, err = r.startAfter(after, &b); r.moved(&b, err); {
				g, err = r.startAfter(after, &b)
			}
			if err == nil {
				err = r.each(g, &b, func(g *Group) bool {
					after = g.Revision
					goOn := yield(g, nil)
					hold.passed(after)
					return goOn
				})
			}
		}
		if r.moveOn(err) {
			r.Commits(after)(yield)
			return
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// From iterates the commits after a cursor, as Commits does. Before the first
// it checks that the cursor belongs to this log and this history; the errors
// are those of cursor.Check.
func (r *Reader) From(c cursor.Cursor) iter.Seq2[*Group, error] {
	return func(yield func(*Group, error) bool) {
		if err := r.check(c); err != nil {
			yield(nil, err)
			return
		}
		r.Commits(c.Revision)(yield)
	}
}

func (r *Reader) check(c cursor.Cursor) error {
	_, err := ask(r, func(r *Reader) (struct{}, error) { return struct{}{}, r.checkHere(c) })
	return err
}

func (r *Reader) checkHere(c cursor.Cursor) error {
	b, err := r.bounds()
	if err != nil {
		return err
	}
	return cursor.Check(c, c.View, cursor.History{
		Log: r.LogID(), Oldest: b.begin.rev + 1, Head: b.stop.rev,
		DigestAt: func(rev uint64) (cursor.Digest, error) { return r.digestAt(rev, &b) },
	})
}

// DigestAt returns the digest of the commit at a revision; of the last commit
// dropped, and of the base, too.
func (r *Reader) DigestAt(revision uint64) (cursor.Digest, error) {
	return ask(r, func(r *Reader) (cursor.Digest, error) { return r.digest(revision) })
}

func (r *Reader) digest(revision uint64) (cursor.Digest, error) {
	b, err := r.bounds()
	if err != nil {
		return 0, err
	}
	for {
		digest, err := r.digestAt(revision, &b)
		if !r.moved(&b, err) {
			return digest, err
		}
	}
}

func (r *Reader) digestAt(rev uint64, b *bounds) (cursor.Digest, error) {
	switch rev {
	case b.begin.rev:
		return cursor.Digest(b.begin.digest), nil
	case b.stop.rev:
		return cursor.Digest(b.stop.digest), nil
	}
	var g Group
	if err := r.at(rev, &g, b); err != nil {
		return 0, err
	}
	return g.Digest, nil
}

// At reads the commit at a revision into g, whose memory is used again. Errors:
// ErrNotFound beyond the head, ErrCompacted, ErrCorrupt.
func (r *Reader) At(revision uint64, g *Group) error { return r.AtHint(revision, 0, g) }

// AtHint is At for a host that kept what Group.Offset said of this commit: it
// is read there, without being looked for. A hint that is wrong, or no longer
// right, costs one read and nothing else.
func (r *Reader) AtHint(revision uint64, offset int64, g *Group) error {
	for {
		r = r.now()
		if err := r.read(revision, offset, g); !r.moveOn(err) {
			return err
		}
	}
}

func (r *Reader) read(revision uint64, hint int64, g *Group) error {
	b, cached, err := r.boundsFor(revision)
	if err != nil {
		return err
	}
	err = r.atHint(revision, hint, g, &b)
	if err != nil && cached { // the reason may be that the file changed
		if b, err = r.bounds(); err != nil {
			return err
		}
		err = r.atHint(revision, hint, g, &b)
	}
	for r.moved(&b, err) {
		err = r.atHint(revision, hint, g, &b)
	}
	return err
}

// Backward iterates the commits from a revision down to the oldest; 0 begins at
// the head. A group is valid until the next one is yielded. Errors: ErrNotFound
// beyond the head, ErrCompacted below the oldest, ErrCorrupt.
func (r *Reader) Backward(from uint64) iter.Seq2[*Group, error] {
	return func(yield func(*Group, error) bool) {
		r := r.now()
		b, err := r.bounds()
		if err == nil {
			from, err = b.backFrom(from)
		}
		if r.moveOn(err) {
			r.Backward(from)(yield)
			return
		}
		var hold *pin
		if err == nil {
			hold, err = r.holdRest(b.begin.rev)
			defer r.letGo(hold)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		var g Group
		var starts []int64 // of the commits from first on, all in one page
		first := from + 1
		for rev := from; rev > b.begin.rev; rev-- {
			if rev < first {
				if first, starts, err = r.startsBefore(rev, starts, &g, &b); r.moved(&b, err) {
					first, rev = rev+1, rev+1 // again, with what is left
					continue
				} else if r.moveOn(err) {
					r.Backward(rev)(yield)
					return
				} else if err != nil {
					yield(nil, err)
					return
				}
			}
			if err := r.load(&g, starts[rev-first], rev, &b); r.moved(&b, err) {
				first, rev = rev+1, rev+1
				continue
			} else if r.moveOn(err) {
				r.Backward(rev)(yield)
				return
			} else if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&g, nil) {
				return
			}
		}
	}
}

// backFrom returns the revision with which to begin backwards.
func (b *bounds) backFrom(from uint64) (uint64, error) {
	switch beyond := from == 0 || from > b.stop.rev; {
	case beyond && b.damage != nil:
		return 0, b.damage
	case from == 0:
		return b.stop.rev, nil
	case beyond:
		return 0, fmt.Errorf("%w: %d, the head is %d", ErrNotFound, from, b.stop.rev)
	case from < b.begin.rev:
		return 0, compacted(b)
	}
	return from, nil
}

var errStopped = errors.New("stopped by the caller")

// each yields the groups behind g's walker up to the bounds.
func (r *Reader) each(g *Group, b *bounds, yield func(*Group) bool) error {
	for g.walk.at.end < b.stop.end {
		if err := r.step(g, b); err != nil {
			return err
		}
		if g.walk.cur.Derived() {
			continue
		}
		g.adopt(r, b)
		if !yield(g) {
			return errStopped
		}
		invariant.Poison(g.body)
	}
	return b.damage
}

// adopt shows the group that the walker passed last.
func (g *Group) adopt(r *Reader, b *bounds) {
	p := &g.walk.cur
	g.header = p.GroupHeader
	g.Commit = Commit{Revision: p.Revision, Digest: cursor.Digest(p.Digest), Count: int(p.Count), Durable: p.end <= b.proven}
	g.Time = time.Unix(0, p.Time)
	g.start, g.end, g.body, g.limit = p.start, p.end, p.body, int64(r.id.MaxRecord)
}

// prepare points g's walker at this log, keeping its memory.
func (r *Reader) prepare(g *Group, b *bounds, chunk int) {
	buf := g.walk.win.buf[:0]
	g.walk = walker{geo: r.geo, win: window{r: r.file, limit: b.stop.end, chunk: chunk, buf: buf}}
}
