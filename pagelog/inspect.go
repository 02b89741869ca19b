package pagelog

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// InspectOptions bounds what a Picture keeps. The zero value keeps little.
type InspectOptions struct {
	// Groups is how many groups are kept, half of them the first of the file
	// and half the last; 0: 64, negative: none.
	Groups int
	// Records is how many records of each group are kept; 0: 8, negative: none.
	Records int
	// Cells is into how many cells the map divides the pages at most; 0: 1,024.
	Cells int
	// Progress, if set, is told how many bytes of the file were looked at, of
	// how many, as that of VerifyOptions is.
	Progress func(done, total int64)
	// AllowAnyFileSystem accepts network and user-space file systems.
	AllowAnyFileSystem bool
}

// Picture is what lies where in the file of a log. Its size is bounded by the
// options, whatever the size of the log. The file's salt is not in it.
type Picture struct {
	Info       Info // what the header area says; Head, Durable and Damage are not filled in
	Identities [2]HeaderPart
	Slots      [2]SlotPart
	HeaderArea int64 // bytes; the first page begins there
	Begin      Mark  // where history begins in this file: behind the retention floor, or the base
	Proven     int64 // the durable floor: offset up to which bytes are proven acknowledged
	End        int64 // behind the last group that holds
	DirtEnd    int64 // behind the last byte that is not zero; from End to there an unacknowledged write is torn
	FileSize   int64 // from DirtEnd to there lie zeros written ahead

	Groups      []GroupPart // in the order of the file, and in two parts if some were left out
	First       int         // how many of them come before those left out
	LeftOut     uint64      // groups between Groups[First-1] and Groups[First]
	Checkpoints uint64      // groups that are checkpoints, also those left out
	Map         []Cell
	CellPages   int64 // pages of one cell; the last one may have fewer
	Tally       Tally
	Forks       []ForkPart   // the log's ancestors, oldest first
	Check       VerifyReport // what Verify says, findings included
}

// HeaderPart is a copy of the identity.
type HeaderPart struct {
	Offset  int64
	Size    int64
	Problem string // empty: it holds
}

// SlotPart is one of the two slots.
type SlotPart struct {
	HeaderPart
	Unused  bool // it was never written
	Newest  bool // it is the newest that holds
	Number  uint64
	Epoch   uint64
	Durable Mark
	Floor   Mark
	Check   Mark // offset 0: none
	Before  Mark // offset 0: none
	Time    time.Time
}

// GroupPart is a group that holds.
type GroupPart struct {
	From       int64  // raw end of the group before: padding or a page header may follow
	Offset     int64  // of its header
	End        int64  // raw end
	Kind       string // commit, checkpoint, index run, floor, or derived: one that this version does not know
	State      string // durable: proven acknowledged; complete: whole, and not proven; torn: never acknowledged, and a page header in it is bad
	Gap        bool   // history is interrupted before it: it is behind damage
	Revision   uint64
	Digest     cursor.Digest
	Epoch      uint64
	Time       time.Time
	DurableEnd int64 // what its header says was durable then
	Count      int   // records
	Records    []RecordPart
}

// RecordPart is a record of a group.
type RecordPart struct {
	Offset   int64 // of its header
	Size     int64 // bytes in the group's body, with header and padding
	Stored   int   // bytes of the payload as stored
	Raw      int   // bytes of the payload once decoded
	Kind     uint32
	Codec    Codec
	Required bool
}

// Inspect looks at all of the log at path, as Verify does, and says what lies
// where, also in a damaged log. It only reads, in bounded memory, and may run
// beside a live writer. Damage is in the picture's Check and is no error. The
// errors are those of Verify; with ErrUnsupported the picture has what was seen
// until then.
func Inspect(ctx context.Context, path string, o InspectOptions) (Picture, error) {
	var p Picture
	err := inDir(path, func(env Env, name string) (err error) {
		if p, err = InspectIn(ctx, env, name, o); err == nil {
			err = env.Dir.Close()
		}
		return err
	})
	return p, err
}

// InspectIn is Inspect in a given world; see Env. The directory stays open.
func InspectIn(ctx context.Context, env Env, name string, o InspectOptions) (Picture, error) {
	if _, err := admit(env.Dir, o.AllowAnyFileSystem); err != nil {
		return Picture{}, err
	}
	f, err := openNamed(env.Dir, name, disk.ReadOnly)
	if err != nil {
		return Picture{}, err
	}
	p, err := inspectFile(ctx, f, o)
	return p, errors.Join(err, f.Close())
}

// inspectFile is the verifier's walk, with somebody who draws what it passes.
func inspectFile(ctx context.Context, f disk.File, o InspectOptions) (Picture, error) {
	const tries = 3 // a writer that opens the log may cut a torn end under us
	progress := progress{tell: o.Progress}
	for try := 1; ; try++ {
		in := inspector{opts: o.withDefaults()}
		v, err := newVerifier(ctx, f, plan{workers: 1, stretch: stretchBytes, visit: in.visit}, &progress)
		if err != nil {
			return Picture{}, err
		}
		in.begin(v)
		err = v.run()
		if errors.Is(err, errChanged) && try < tries {
			continue
		}
		in.finish()
		progress.finish(v.size)
		return in.pic, err
	}
}

func (o InspectOptions) withDefaults() InspectOptions {
	or := func(n, otherwise int) int {
		if n == 0 {
			return otherwise
		}
		return max(n, 0)
	}
	o.Groups, o.Records, o.Cells = or(o.Groups, 64), or(o.Records, 8), max(or(o.Cells, 1024), 1)
	return o
}

// inspector draws the picture while the verifier walks.
type inspector struct {
	opts   InspectOptions
	v      *verifier
	pic    Picture
	last   []GroupPart // the last groups, a ring
	seen   uint64      // groups
	drawn  int64       // up to here the map is drawn
	recent []span      // groups above the proven end, as far as they are not on the map
	tally  tallier
}

// span is a stretch of groups, all of which hold the same.
type span struct {
	from, to int64
	what     content
}

// begin draws the header area and what retention dropped.
func (in *inspector) begin(v *verifier) {
	in.v = v
	h := v.head
	p := &in.pic
	p.Info = h.info()
	p.HeaderArea, p.FileSize, p.Begin = h.geo.HeaderArea(), h.size, markAt(h.begin().place())
	for i, off := range [2]int64{frame.IdentityOffset, frame.IdentityCopyOffset} {
		p.Identities[i] = HeaderPart{Offset: off, Size: frame.IdentitySize, Problem: problem(h.badIdentity[i])}
	}
	for i := range h.slots {
		p.Slots[i] = h.slotPart(i)
	}
	for _, a := range h.id.Lineage {
		p.Forks = append(p.Forks, ForkPart{Log: a.LogID, End: a.End, Revision: a.Revision, Digest: cursor.Digest(a.Digest)})
	}
	in.grid()
	in.paint(0, p.HeaderArea, cellHeader)
	in.paint(p.HeaderArea, p.Begin.Offset, cellDropped)
	in.drawn = p.Begin.Offset
}

func problem(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (h *header) slotPart(i int) SlotPart {
	s := &h.slots[i]
	part := SlotPart{HeaderPart: HeaderPart{Offset: frame.SlotOffsets[i], Size: frame.SlotSize}}
	if s.err != nil {
		part.Problem, part.Unused = problem(s.err), h.neverWritten(i)
		return part
	}
	part.Newest = h.newest() == &s.Slot
	part.Number, part.Epoch, part.Time = s.Number, s.Epoch, time.Unix(0, s.Time)
	part.Durable, part.Floor, part.Check, part.Before = markAt(s.Durable), markAt(s.Floor), markAt(s.Check), markAt(s.Before)
	return part
}

// visit takes a group that holds.
func (in *inspector) visit(p *passed, gap bool) error {
	kind := kindOf(p)
	in.draw(p, kind)
	in.tally.visit(p)
	if kind == kindCheckpoint {
		in.pic.Checkpoints++
	}
	in.seen++
	first := (in.opts.Groups + 1) / 2
	keep := in.opts.Groups - first
	switch {
	case len(in.pic.Groups) < first:
		in.pic.Groups = append(in.pic.Groups, GroupPart{})
		in.part(&in.pic.Groups[len(in.pic.Groups)-1], p, kind, gap)
	case len(in.last) < keep:
		in.last = append(in.last, GroupPart{})
		in.part(&in.last[len(in.last)-1], p, kind, gap)
	case keep > 0:
		in.part(&in.last[(in.seen-uint64(first)-1)%uint64(keep)], p, kind, gap)
	}
	return nil
}

// part fills in what is kept of a group.
func (in *inspector) part(g *GroupPart, p *passed, kind string, gap bool) {
	records := g.Records[:0]
	geo, at := in.v.geo, int64(0)
	for r := range frame.Records(p.body) {
		if len(records) == in.opts.Records {
			break
		}
		part := RecordPart{
			Offset: bodyOffset(geo, p.start, at), Size: frame.RecordSize(len(r.Data)), Stored: len(r.Data), Raw: len(r.Data),
			Kind: r.Kind, Codec: r.Codec(), Required: r.Flags&frame.FlagRequired != 0,
		}
		if part.Codec != frame.Plain {
			part.Raw = int(r.Raw)
		}
		records = append(records, part)
		at += part.Size
	}
	*g = GroupPart{
		From: p.before.end, Offset: p.start, End: p.end, Kind: kind, Gap: gap, Revision: p.Revision, Digest: cursor.Digest(p.Digest),
		Epoch: p.Epoch, Time: time.Unix(0, p.Time), DurableEnd: p.DurableEnd, Count: int(p.Count), Records: records,
	}
}

// bodyOffset returns where in the file byte n of the body of the group at start
// lies.
func bodyOffset(g *frame.Geometry, start, n int64) int64 {
	off := g.End(start, n)
	if off%g.PageSize() == 0 {
		off += frame.PageHeaderSize
	}
	return off
}

// Kinds and states of groups.
const (
	kindCommit     = "commit"
	kindCheckpoint = "checkpoint"
	kindIndexRun   = "index run"
	kindFloor      = "floor"
	kindDerived    = "derived"

	stateDurable  = "durable"
	stateComplete = "complete"
	stateTorn     = "torn"
)

// kindOf names what a group is for.
func kindOf(p *passed) string {
	if !p.Derived() {
		return kindCommit
	}
	for r := range frame.Records(p.body) {
		switch r.Kind {
		case frame.KindCheckpoint:
			return kindCheckpoint
		case frame.KindIndexRun:
			return kindIndexRun
		case frame.KindFloor:
			return kindFloor
		}
		break
	}
	return kindDerived
}

// finish puts together what is known only at the end.
func (in *inspector) finish() {
	v, p := in.v, &in.pic
	p.Check, p.Proven, p.Tally = v.report, v.proven, in.tally.finish()
	p.End = v.report.last
	if p.End == 0 { // the walk was not finished
		p.End = v.walk.at.end
	}
	p.DirtEnd = max(p.End, v.dirtEnd)
	p.First = len(p.Groups)
	if kept := len(in.last); kept > 0 {
		oldest := int((in.seen - uint64(p.First)) % uint64(kept))
		p.Groups = append(append(p.Groups, in.last[oldest:]...), in.last[:oldest]...)
	}
	p.LeftOut = in.seen - uint64(len(p.Groups))
	for i := range p.Groups {
		g := &p.Groups[i]
		switch {
		case g.Offset >= p.End:
			g.State = stateTorn
		case g.End > p.Proven:
			g.State = stateComplete
		default:
			g.State = stateDurable
		}
	}
	in.finishMap()
}
