package pagelog

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// The crash harness. A workload is a line of words, run on a simulated disk.
// At every crash point of it, before every operation and inside every sync,
// the harness builds the disks that a power cut may leave, and opens the log in
// each; while it opens, the power may go again. What must hold of every disk:
//
//   - the log opens, without a flag;
//   - what it holds is a prefix of what was handed over, by content, and no
//     shorter than what was acknowledged, nor than what a Durable reader saw;
//   - the digest of its head is the one that its content gives;
//   - every key of those commits leads where it must, and no other is found;
//   - once it is open, nothing of it is in flight;
//   - a reader that never writes sees no damage before, and the same after;
//   - opening it again changes nothing, and commits go on behind it.
//
// The words of a workload:
//
//	c100+20    a durable commit of two records of 100 and 20 bytes
//	k100       a complete-only commit
//	b100/20/8  three durable commits that share one write
//	m100/20/8  the same, the first, the third, … complete-only
//	&k50       a complete-only commit in the middle of the next sync
//	y3         a durable commit of three records, each with a key of its own; the
//	           first has one more, which all such commits use
//	z3         the same, complete-only
//	reindex    Reindex
//	sync       Sync
//	blob       Checkpoint with a few bytes, at the head
//	close      Close                 kill    the process ends, the disk goes on
//	open       Open                  cut7    the power goes; the disk is one of those
//	                                         possible, chosen by seed 7
//	full       the disk is full      room    and has space again
//	!sync !dir !write !trunc !alloc  the next such operation fails; !sync2 the one
//	                                 after it; !write:100 after 100 bytes
//
// A word that makes no sense where it stands, a commit to a closed log, does
// nothing, so that every line of words is a workload.
type crash struct {
	workload string
	create   CreateOptions
	opts     Options
	depths   []simdisk.ImageOptions // of crashes: in the workload, in its recovery, in that one's …
	nest     uint64                 // crash in the recovery of one disk of so many
	seen     *hashSet               // disks with what must hold of them: not looked at twice
	disks    *hashSet               // disks alone, to count them
	stats    crashStats
	faults   bool        // commits may be rejected at any time
	over     func() bool // if set: enough was seen, leave the rest
	only     []crashAt   // look at this disk alone
	at       []crashAt   // where the harness is
	levels   []*level
	err      error
}

// crashAt is the nth distinct disk of a crash point.
type crashAt struct{ point, image int }

type crashStats struct {
	workloads, points, images int
}

func (a crashStats) add(b crashStats) crashStats {
	return crashStats{a.workloads + b.workloads, a.points + b.points, a.images + b.images}
}

// handed is a commit as it was handed over.
type handed struct {
	records [][]byte
	kinds   []uint32 // of the records; nil: all 0
	keys    []uint32 // records that have a key of their own
	digest  uint64   // of the history that ends with it
}

// kind returns the kind of a record.
func (h *handed) kind(i int) uint32 {
	if h.kinds == nil {
		return 0
	}
	return h.kinds[i]
}

// level is one run on one disk: the workload, or a recovery.
type level struct {
	c         *crash
	depth     int
	fs        *simdisk.FS
	dice      dice
	now       int64
	log       *Log
	poisoned  bool
	faulty    bool     // something was made to fail: errors are to be expected
	maybeTorn bool     // the power went, or a write was made to fail: a slot may be torn
	during    []string // words for the next syncs
	points    int
	born      bool // Create returned
	hand      []handed
	acked     int   // commits that were acknowledged
	ackedEnd  int64 // and the offset where the last of them ends
	env       Env
}

func (v *level) reset(s *simdisk.FS) {
	*v = level{c: v.c, depth: v.depth, fs: s, dice: v.dice, hand: v.hand[:0], env: v.env}
	v.dice.state = uint64(v.depth)
}

func (v *level) world() Env {
	if v.env.Now == nil {
		v.env = Env{Random: &v.dice, Now: func() int64 { v.now++; return v.now }, Idle: -1}
	}
	v.env.Dir = v.fs.Dir()
	return v.env
}

// run runs the workload and returns what was wrong, with the command that shows
// it again.
func (c *crash) run() error {
	c.stats.workloads++
	v := c.level(0)
	v.reset(simdisk.New())
	v.fs.Capacity = 1 << 40
	v.fs.Before(v.point)
	v.start()
	for w := range strings.FieldsSeq(c.workload) {
		if c.err != nil {
			break
		}
		v.do(w)
	}
	v.crash() // and once more at the end
	return c.err
}

// level returns the level of this depth; levels are used again.
func (c *crash) level(depth int) *level {
	for depth >= len(c.levels) {
		c.levels = append(c.levels, &level{c: c, depth: len(c.levels)})
	}
	return c.levels[depth]
}

// fail reports a violation.
func (v *level) fail(format string, args ...any) {
	if v.c.err != nil {
		return
	}
	v.c.err = fmt.Errorf("%s\nreplay: go test ./pagelog -run 'TestCrash_Replay$' -crash.at %q -crash.create %q -crash.options %q -crash.run %q\n%s",
		fmt.Sprintf(format, args...), formatAt(v.c.at), fmt.Sprintf("%d/%d/%d/%d", v.c.create.PageSize, v.c.create.Align, v.c.create.MaxSize, v.c.create.Base.Revision),
		fmt.Sprintf("%d/%d/%d", v.c.opts.ZeroAhead, v.c.opts.MaxUnsynced, v.c.opts.CheckpointEvery), v.c.workload, v.fs.Log())
}

// point is a crash point. In the middle of a sync something else may go on.
func (v *level) point(op simdisk.Op) {
	v.crash()
	if op.Inside && op.Kind == simdisk.OpSync && len(v.during) > 0 {
		w := v.during[0]
		v.during = v.during[1:]
		v.do(w)
		v.crash()
	}
}

// crash builds the disks that a power cut may leave now, and opens the log in
// each.
func (v *level) crash() {
	c := v.c
	if c.err != nil || c.over != nil && c.over() {
		return
	}
	v.points++
	c.stats.points++
	only := crashAt{}
	if v.depth < len(c.only) {
		if only = c.only[v.depth]; only.point != v.points {
			return
		}
	}
	if v.depth == 0 && v.born {
		v.watch()
	}
	at := len(c.at)
	opts := c.depths[v.depth]
	opts.Protected = v.protected
	oracle := v.oracle()
	image := 0
	v.fs.EachImage(opts, func(img *simdisk.FS) bool {
		image++
		if only.point != 0 && only.image != image {
			return true
		}
		c.stats.images++
		hash := img.Hash()
		c.disks.add(hash)
		if c.seen.add(hash^oracle) || only.point != 0 {
			c.at = append(c.at[:at], crashAt{v.points, image})
			v.look(img, hash)
			c.at = c.at[:at]
		}
		return c.err == nil
	})
}

// protected says which sectors assumption A1 covers: those of acknowledged
// groups.
func (v *level) protected(name string, off int64) bool {
	return name == logName && off < v.ackedEnd && off >= int64(frame.IdentityCopyOffset+frame.IdentitySize)
}

// oracle is a hash of what must hold of a disk here.
func (v *level) oracle() uint64 {
	d := dice{state: uint64(v.acked)<<32 ^ uint64(len(v.hand))<<8 ^ uint64(v.ackedEnd)<<40 ^ uint64(v.depth)}
	h := d.next()
	if v.born {
		h = d.next()
	}
	if n := len(v.hand); n > 0 {
		h ^= v.hand[n-1].digest
	}
	how := dice{state: uint64(v.c.opts.ZeroAhead)<<1 ^ uint64(v.c.opts.MaxUnsynced)<<8 ^ uint64(v.c.opts.CheckpointEvery)<<32 ^ uint64(v.c.create.MaxSize)}
	return h ^ how.next()
}

// watch looks at the running system with readers: a Durable one must not see
// what a power cut may take away.
func (v *level) watch() {
	if most := v.c.create.MaxSize; most > 0 && v.size() > (most+511)/512*512 {
		v.fail("the file has %d bytes, at most %d are allowed", v.size(), most)
	}
	for _, durable := range []bool{false, true} {
		r, err := OpenReaderIn(Env{Dir: v.fs.Dir()}, logName, ReaderOptions{Durable: durable})
		if err != nil {
			v.fail("reader (durable %v): %v", durable, err)
			return
		}
		n, err := v.compare(r)
		slots := &r.view.header.slots
		switch {
		case err != nil:
			v.fail("reader (durable %v): %v", durable, err)
		case !v.faulty && !v.maybeTorn && (slots[0].err != nil || slots[1].err != nil):
			v.fail("slots that nobody damaged: %v, %v", slots[0].err, slots[1].err)
		case durable: // what it saw must be there after every power cut from now on
			v.acked, v.ackedEnd = max(v.acked, n), max(v.ackedEnd, r.view.proven)
		}
		_ = r.Close()
	}
}

// compare reads everything and holds it against what was handed over.
func (v *level) compare(r *Reader) (int, error) {
	n := 0
	for g, err := range r.Commits(v.base()) {
		if err != nil {
			return n, err
		}
		if n >= len(v.hand) {
			return n, fmt.Errorf("commit %d was never handed over", n+1)
		}
		want := &v.hand[n]
		n++
		if g.Revision != v.base()+uint64(n) || g.Count != len(want.records) || uint64(g.Digest) != want.digest {
			return n, fmt.Errorf("commit %d reads as revision %d, %d records, digest %v", n, g.Revision, g.Count, g.Digest)
		}
		i := 0
		for rec := range frame.Records(g.body) {
			if !bytes.Equal(rec.Data, want.records[i]) || rec.Kind != want.kind(i) {
				return n, fmt.Errorf("record %d of commit %d has other bytes than were handed over", i, n)
			}
			i++
		}
	}
	return n, v.compareKeys(r, n)
}

// compareKeys looks up the keys of the first n commits, and of those that are
// not there.
func (v *level) compareKeys(r *Reader, n int) error {
	newest, any := uint64(0), false
	for i := range v.hand {
		h, rev := &v.hand[i], v.base()+uint64(i+1)
		if len(h.keys) == 0 {
			continue
		}
		any = true
		for j, want := range h.keys {
			got, record, err := r.Lookup(ownKey(rev, j))
			if i < n && (err != nil || got != rev || record != want) || i >= n && !errors.Is(err, ErrNoKey) {
				return fmt.Errorf("key %d of commit %d, of %d that are there, leads to revision %d, record %d: %w", j, i+1, n, got, record, err)
			}
		}
		if i < n {
			newest = rev
		}
	}
	if !any {
		return nil
	}
	got, _, err := r.Lookup([]byte("all"), []byte("newest"))
	if newest == 0 && !errors.Is(err, ErrNoKey) || newest > 0 && (err != nil || got != newest) {
		return fmt.Errorf("the key of all leads to revision %d, not %d: %w", got, newest, err)
	}
	return nil
}

// ownKey returns the jth key of the commit rev.
func ownKey(rev uint64, j int) (namespace, key []byte) {
	return []byte("own"), fmt.Appendf(nil, "%d.%d", rev, j)
}

// look opens the log on a disk that a power cut left.
func (v *level) look(img *simdisk.FS, hash uint64) {
	c := v.c
	w := c.level(v.depth + 1)
	w.reset(img)
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
		}
	}()
	img.Capacity = 0
	w.hand = append(w.hand, v.hand...)
	w.acked, w.ackedEnd, w.born = v.acked, v.ackedEnd, v.born
	deeper := w.depth < len(c.depths) && (hash%c.nest == 0 || c.only != nil)
	if !w.peek(hash) {
		return
	}
	if deeper {
		img.Before(w.point)
	}
	l, err := OpenIn(w.world(), logName, c.opts)
	img.Before(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !w.born:
		w.startOver()
		return
	case err != nil:
		w.fail("open: %v", err)
		return
	}
	w.recovered(l)
}

// peek reads the disk before anything is recovered. It reports whether to go
// on.
func (v *level) peek(hash uint64) bool {
	if hash>>8%4 != 0 && v.c.only == nil {
		return true // a sample will do
	}
	r, err := OpenReaderIn(v.world(), logName, ReaderOptions{Durable: hash>>16%2 == 0})
	if err != nil {
		if !v.born && errors.Is(err, fs.ErrNotExist) {
			return true
		}
		v.fail("reader before recovery: %v", err)
		return false
	}
	if _, err := v.compare(r); err != nil {
		v.fail("reader before recovery: %v", err)
		return false
	}
	_ = r.Close()
	return true
}

// startOver creates the log where a crash left none; what was left over must
// not be in the way, and must be gone afterwards.
func (v *level) startOver() {
	l, err := CreateIn(v.world(), logName, v.c.create, v.c.opts)
	if err != nil {
		v.fail("create after a crash in create: %v", err)
		return
	}
	if names, err := v.fs.Dir().Names(); err != nil || !slices.Equal(names, []string{logName}) {
		v.fail("after create: names %q, %v", names, err)
	}
	_ = l.Close()
}

// recovered checks a log that was opened after a crash.
func (v *level) recovered(l *Log) {
	n, err := v.compare(l.Reader)
	rep := l.Report()
	switch {
	case err != nil:
		v.fail("after recovery: %v", err)
	case n < v.acked:
		v.fail("%d commits recovered, %d were acknowledged", n, v.acked)
	case rep.Head != v.base()+uint64(n) || l.Head().Revision != rep.Head || !l.Head().Durable:
		v.fail("recovered %d commits, the report says %d, the head %+v", n, rep.Head, l.Head())
	case n > 0 && uint64(l.Head().Digest) != v.hand[n-1].digest:
		v.fail("the head has digest %v, its content gives another", l.Head().Digest)
	}
	if s := v.fs.EachImage(simdisk.ImageOptions{}, func(*simdisk.FS) bool { return true }); s.Distinct != 1 {
		v.fail("an open log has bytes in flight: %d disks are possible", s.Distinct)
	}
	if v.c.err == nil {
		v.again(n, rep)
	}
}

// again opens the log once more, commits, and reads everything.
func (v *level) again(n int, first Report) {
	v.fs.Kill()
	l, err := OpenIn(v.world(), logName, v.c.opts)
	if err != nil {
		v.fail("second open: %v", err)
		return
	}
	second := l.Report()
	if second.Head != first.Head || second.End != first.End || second.Epoch != first.Epoch+1 || second.Torn != 0 || second.BadSlots > first.BadSlots {
		v.fail("opening twice: first %+v, then %+v", first, second)
		return
	}
	records := [][]byte{payload(-1, 33)}
	v.hand = v.hand[:n]
	v.hand = append(v.hand, v.next(handed{records: records}))
	if _, err := l.Commit(context.Background(), batchOf(records...)); errors.Is(err, ErrNoSpace) && v.c.faults {
		return
	} else if err != nil {
		v.fail("commit after recovery: %v", err)
		return
	}
	r, err := OpenReaderIn(v.world(), logName, ReaderOptions{})
	if err != nil {
		v.fail("reader after recovery: %v", err)
		return
	}
	if m, err := v.compare(r); err != nil || m != n+1 {
		v.fail("reader after recovery: %d of %d commits, %v", m, n+1, err)
	}
	_ = r.Close()
}

// next returns what the next commit is if it has these records.
func (v *level) next(c handed) handed {
	prev := uint64(v.c.create.Base.Digest)
	if n := len(v.hand); n > 0 {
		prev = v.hand[n-1].digest
	}
	var body []byte
	for i, r := range c.records {
		body = frame.AppendRecord(body, c.kind(i), 0, frame.Plain, r)
	}
	h := frame.GroupHeader{Count: uint32(len(c.records)), Revision: v.base() + uint64(len(v.hand)+1), Prev: prev}
	c.digest = h.ChainDigest(body)
	return c
}

// base is the revision that the log begins after.
func (v *level) base() uint64 { return v.c.create.Base.Revision }

// baseAt is a base at a revision, or none.
func baseAt(rev uint64) cursor.Cursor {
	if rev == 0 {
		return cursor.Cursor{}
	}
	return cursor.Cursor{Position: cursor.Position{Log: cursor.LogID{9}, Revision: rev}, Digest: cursor.Digest(rev * 7)}
}

// start creates the log.
func (v *level) start() {
	l, err := CreateIn(v.world(), logName, v.c.create, v.c.opts)
	if err != nil {
		v.fail("create: %v", err)
		return
	}
	v.log, v.born, v.ackedEnd = l, true, l.durable.end
}

// do runs one word of the workload.
func (v *level) do(w string) {
	switch arg := w[1:]; {
	case w[0] == '&':
		if v.c.opts.MaxUnsynced == 0 { // else it could wait for the sync that it is part of
			v.during = append(v.during, arg)
		}
	case w[0] == '!':
		v.breakNext(arg)
	case w == "full":
		v.fs.Capacity, v.faulty = v.size(), true
	case w == "room":
		v.fs.Capacity, v.faulty = 1<<40, false
	case w == "kill":
		v.fs.Kill()
		v.log = nil
	case strings.HasPrefix(w, "cut"):
		v.cut(w[3:])
	case w == "open" && v.log == nil:
		v.open()
	case v.log == nil || w == "open":
	case w == "sync":
		n := len(v.hand)
		v.settle(v.log.Sync(context.Background()), n)
	case w == "blob":
		v.blob()
	case w == "reindex":
		n := len(v.hand)
		v.settle(v.log.Reindex(context.Background()), n)
	case w == "close":
		v.close()
	case strings.ContainsRune("ckbm", rune(w[0])):
		v.commits(w[0], strings.Split(arg, "/"))
	case w[0] == 'y', w[0] == 'z':
		v.keyed(w[0] == 'z', arg)
	default:
		v.fail("no such word: %q", w)
	}
}

// breakNext arms a fault.
func (v *level) breakNext(arg string) {
	arg, part, _ := strings.Cut(arg, ":")
	name := strings.TrimRight(arg, "0123456789")
	nth, _ := strconv.Atoi(arg[len(name):])
	f := simdisk.Fault{Nth: nth}
	f.Part, _ = strconv.Atoi(part)
	kinds := map[string]simdisk.Kind{
		"sync": simdisk.OpSync, "dir": simdisk.OpSyncDir, "write": simdisk.OpWrite,
		"trunc": simdisk.OpTruncate, "alloc": simdisk.OpAllocate,
	}
	f.Kind = kinds[name]
	v.fs.Inject(f)
	v.faulty, v.maybeTorn = true, v.maybeTorn || name == "write"
}

// size is the bytes on disk that the log takes.
func (v *level) size() int64 {
	b, err := v.fs.ReadFile(logName)
	if err != nil {
		v.fail("%v", err)
	}
	return (int64(len(b)) + simdisk.SectorSize - 1) / simdisk.SectorSize * simdisk.SectorSize
}

// cut takes the power away and goes on with one of the disks that are left.
func (v *level) cut(seed string) {
	n, _ := strconv.ParseUint(seed, 10, 64)
	opts := v.c.depths[0]
	opts.Protected = v.protected
	img := v.fs.RandomImage(opts, rand.New(rand.NewPCG(n, 1))).Clone()
	img.Capacity = v.fs.Capacity
	v.fs.Before(nil)
	v.fs, v.log, v.maybeTorn = img, nil, true
	v.fs.Before(v.point)
}

func (v *level) open() {
	v.poisoned = false
	l, err := OpenIn(v.world(), logName, v.c.opts)
	if err != nil {
		if !v.faulty {
			v.fail("open: %v", err)
		}
		v.fs.Kill()
		return
	}
	n, err := v.compare(l.Reader)
	if err != nil || n < v.acked {
		v.fail("after open: %d commits, %d acknowledged, %v", n, v.acked, err)
	}
	v.log, v.hand = l, v.hand[:n]
	v.acked, v.ackedEnd = n, l.durable.end
}

func (v *level) close() {
	ops := v.fs.Ops()
	l := v.log
	err := l.Close()
	v.log = nil
	switch {
	case v.poisoned && (!errors.Is(err, ErrPoisoned) || v.fs.Ops() != ops):
		v.fail("closing a poisoned log: %v, %d operations", err, v.fs.Ops()-ops)
	case err == nil:
		v.acked, v.ackedEnd = len(v.hand), l.durable.end
	case v.poisoned: // and says so, whatever is well by now
	case !v.faulty:
		v.fail("close: %v", err)
	}
	v.fs.Kill()
}

func (v *level) blob() {
	if head := v.log.Head(); head.Revision > 0 {
		n := len(v.hand)
		v.settle(v.log.Checkpoint(context.Background(), head.Revision, payload(n, 24)), n)
	}
}

// settle takes in how an operation ended that made n commits durable.
func (v *level) settle(err error, n int) {
	switch {
	case v.poisoned:
		if !errors.Is(err, ErrPoisoned) {
			v.fail("a poisoned log says: %v", err)
		}
	case err == nil:
		v.acked = max(v.acked, n)
		v.ackedEnd = max(v.ackedEnd, v.log.durable.end)
	case !v.faulty && !v.c.faults && !errors.Is(err, ErrClosed):
		v.fail("with nothing broken: %v", err)
	case errors.Is(err, ErrUncertain):
		v.poisoned = true
	}
}

// keyed hands over a commit with keys.
func (v *level) keyed(complete bool, keys string) {
	n, err := strconv.Atoi(keys)
	if err != nil {
		v.fail("%v", err)
	}
	b := &Batch{CompleteOnly: complete}
	var h handed
	rev := v.base() + uint64(len(v.hand)+1)
	key := func(record uint32, namespace, key []byte) {
		b.Key(namespace, key)
		h.records = append(h.records, checkpoint.AppendKey(nil, checkpoint.Key{Record: record, Namespace: namespace, Key: key}))
		h.kinds = append(h.kinds, frame.KindIndexKey)
	}
	for j := range n {
		record, data := uint32(len(h.records)), payload(len(v.hand)*31+j, 9)
		b.Append(data)
		h.records, h.kinds, h.keys = append(h.records, data), append(h.kinds, 0), append(h.keys, record)
		ns, own := ownKey(rev, j)
		key(record, ns, own)
		if j == 0 {
			key(record, []byte("all"), []byte("newest"))
		}
	}
	base := len(v.hand)
	v.hand = append(v.hand, v.next(h))
	v.handOver([]*Batch{b}, base)
}

// commits hands over commits, several of them in one write.
func (v *level) commits(kind byte, sizes []string) {
	base := len(v.hand)
	batches := make([]*Batch, len(sizes))
	for i, list := range sizes {
		var records [][]byte
		for n := range strings.SplitSeq(list, "+") {
			size, err := strconv.Atoi(n)
			if err != nil {
				v.fail("%v", err)
			}
			records = append(records, payload(len(v.hand)*31+len(records), size))
		}
		batches[i] = batchOf(records...)
		batches[i].CompleteOnly = kind == 'k' || kind == 'm' && i%2 == 0
		v.hand = append(v.hand, v.next(handed{records: records}))
	}
	v.handOver(batches, base)
}

// handOver commits batches, the first of which is commit base+1, in one write.
func (v *level) handOver(batches []*Batch, base int) {
	ops, poisoned := v.fs.Ops(), v.poisoned
	for i, err := range commitTogether(v.log, batches) {
		switch {
		case err == nil && batches[i].CompleteOnly:
		case err != nil && !errors.Is(err, ErrUncertain):
			v.hand = v.hand[:min(len(v.hand), base+i)] // rejected: never to be seen
			v.settle(err, 0)
		case errors.Is(err, ErrUncertain) && !poisoned && v.poisoned: // it shared the write that failed
		default:
			v.settle(err, base+i+1)
		}
	}
	if poisoned && v.fs.Ops() != ops {
		v.fail("a poisoned log went on writing")
	}
}

// commitTogether commits batches with one write, in this goroutine.
func commitTogether(l *Log, batches []*Batch) []error {
	errs := make([]error, len(batches))
	tickets := make([]*Ticket, len(batches))
	for i, b := range batches {
		tickets[i] = l.ticket(b, nil)
		if errs[i] = tickets[i].err; errs[i] == nil {
			errs[i] = l.enqueue(context.Background(), tickets[i])
		}
	}
	for i := len(tickets) - 1; i >= 0; i-- { // the last one's waiter does it all
		if errs[i] == nil {
			_, errs[i] = tickets[i].Wait(context.Background())
		}
	}
	return errs
}

var (
	replayAt      = flag.String("crash.at", "", "disk to look at: point.image, of the workload and of each recovery")
	replayRun     = flag.String("crash.run", "", "workload to run")
	replayCreate  = flag.String("crash.create", "4096/0/0/0", "page size, alignment, maximum size, revision of the base")
	replayOptions = flag.String("crash.options", "0/0/0", "zero-ahead, bytes unsynced, bytes between checkpoints")
)

func formatAt(at []crashAt) string {
	var parts []string
	for _, a := range at {
		parts = append(parts, fmt.Sprintf("%d.%d", a.point, a.image))
	}
	return strings.Join(parts, ",")
}

// TestCrash_Replay looks at the disk that a failure named.
func TestCrash_Replay(t *testing.T) {
	if *replayRun == "" {
		t.Skip("nothing to replay")
	}
	c := newCrash(*replayRun)
	var zero int
	var base uint64
	if _, err := fmt.Sscanf(*replayCreate, "%d/%d/%d/%d", &c.create.PageSize, &c.create.Align, &c.create.MaxSize, &base); err != nil {
		t.Fatal(err)
	}
	c.create.Base = baseAt(base)
	if _, err := fmt.Sscanf(*replayOptions, "%d/%d/%d", &zero, &c.opts.MaxUnsynced, &c.opts.CheckpointEvery); err != nil {
		t.Fatal(err)
	}
	c.opts.ZeroAhead = ZeroAhead(zero)
	for part := range strings.SplitSeq(*replayAt, ",") {
		var a crashAt
		if _, err := fmt.Sscanf(part, "%d.%d", &a.point, &a.image); err == nil {
			c.only = append(c.only, a)
		}
	}
	if err := c.run(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", c.stats)
}
