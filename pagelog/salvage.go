package pagelog

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// SalvageOptions is how a damaged log is saved. The zero value saves all that
// holds.
type SalvageOptions struct {
	// Prefix saves only the history up to the first damage.
	Prefix bool
	// Progress, if set, is told how much of the work is done. It is called by
	// the goroutine that called Salvage; done never falls and ends at total.
	Progress func(done, total int64)
	// AllowAnyFileSystem accepts network and user-space file systems.
	AllowAnyFileSystem bool
}

// SalvageReport says what was saved, and where it is now.
type SalvageReport struct {
	Source  VerifyReport `json:"source"`  // what is wrong with the old log
	LogID   cursor.LogID `json:"log_id"`  // of the new log
	Head    uint64       `json:"head"`    // revision of the new log's last commit
	Kept    uint64       `json:"kept"`    // commits kept as they are, with their revisions
	Saved   uint64       `json:"saved"`   // commits behind damage whose records were saved as opaque ones
	Records uint64       `json:"records"` // records of those
	Map     []Moved      `json:"map"`     // where the old revisions are now, in the order of the old file
	Unmap   int          `json:"map_left_out"`
}

// Moved says that old revisions are new ones now. Where both stretches have the
// same length they go in step; else one old commit became several.
type Moved struct {
	OldFirst uint64 `json:"old_first"`
	OldLast  uint64 `json:"old_last"`
	NewFirst uint64 `json:"new_first"`
	NewLast  uint64 `json:"new_last"`
	Opaque   bool   `json:"opaque"` // as records of kind frame.KindSalvaged
}

// Salvage writes what holds of a damaged log into a new one, which must not
// exist, and never touches the old one.
//
// The new log has its own ID. History up to the first damage is in it as it
// was: the same commits with the same revisions and digests, their records
// stored as they were, and, where nothing before them was lost, checkpoints.
// The commits that hold behind a gap cannot be history again, since what they
// build on is lost; their records are saved as opaque ones of kind
// frame.KindSalvaged, each of which names its old place (see DecodeSalvaged), in
// commits behind the kept history.
//
// A crash leaves no new log, or a whole one. Errors: fs.ErrExist,
// ErrNotALog, ErrUnsupported, ErrNoSpace, ErrFileSystem, fs.ErrNotExist, the
// context's, and what the file system says.
func Salvage(ctx context.Context, path, newPath string, o SalvageOptions) (SalvageReport, error) {
	var report SalvageReport
	err := between(path, newPath, func(from, to spot) (err error) {
		report, err = salvage(ctx, from, to, o)
		return err
	})
	return report, err
}

func salvage(ctx context.Context, from, to spot, o SalvageOptions) (SalvageReport, error) {
	if err := to.vacant(o.AllowAnyFileSystem); err != nil {
		return SalvageReport{}, err
	}
	f, err := from.open(o.AllowAnyFileSystem)
	if err != nil {
		return SalvageReport{}, err
	}
	s := salvager{src: f, opts: o}
	err = from.fail(s.prepare(ctx, to.env))
	if err == nil {
		err = to.publish(func(out disk.File) error { return s.fill(ctx, out) })
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return SalvageReport{}, err
	}
	return s.report, nil
}

// salvager is the state of one salvage.
type salvager struct {
	src    disk.File
	opts   SalvageOptions
	head   *header // of the old log
	id     frame.Identity
	geo    *frame.Geometry
	out    forward
	build  *frame.Builder
	report SalvageReport

	at      point // end of the new log
	durable int64 // what the headers of kept groups may call durable
	moved   bool  // groups no longer lie where they lay in the old file
	checks  [2]bool
	body    []byte // of the opaque commit under way
	count   uint32
	data    []byte
}

// errEnough ends the walk behind the sound prefix.
var errEnough = errors.New("what is wanted was read")

// prepare finds out what holds and makes the new log's identity.
func (s *salvager) prepare(ctx context.Context, env Env) error {
	var err error
	s.report.Source, err = verifyFile(ctx, s.src, VerifyOptions{Progress: s.phase(0)}, plan{workers: runtime.GOMAXPROCS(0), stretch: stretchBytes})
	if err != nil {
		return err
	}
	if s.head, err = readSteady(s.src); err != nil {
		return err
	}
	s.id = s.head.id
	s.id.Lineage = nil
	if err := draw(&s.id, env); err != nil {
		return err
	}
	s.id.IndexKey = s.head.id.IndexKey // index runs are kept
	if !s.opts.Prefix {
		s.id.MaxRecord = min(s.id.MaxRecord+salvagedHeader, frame.MaxRecordBytes)
		s.id.MaxGroup = min(s.id.MaxGroup+salvagedHeader+frame.RecordHeaderSize, frame.MaxGroupBytes)
	}
	s.geo = s.id.Geometry()
	s.build = frame.NewBuilder(s.geo)
	s.at = s.head.begin()
	s.durable = s.at.end
	s.report.LogID = s.id.LogID
	return nil
}

// phase returns what tells the progress of the first or the second reading.
func (s *salvager) phase(n int64) func(done, total int64) {
	if s.opts.Progress == nil {
		return nil
	}
	return func(done, total int64) { s.opts.Progress(n*total+done, 2*total) }
}

// fill writes the new log.
func (s *salvager) fill(ctx context.Context, out disk.File) error {
	s.out.f = out
	_, err := verifyFile(ctx, s.src, VerifyOptions{Progress: s.phase(1)}, plan{workers: 1, stretch: stretchBytes, visit: s.visit})
	if errors.Is(err, errEnough) {
		err = nil
		if tell := s.phase(1); tell != nil {
			tell(s.report.Source.FileSize, s.report.Source.FileSize)
		}
	}
	if err == nil {
		err = s.out.flush()
	}
	if err == nil {
		err = s.writeHeader(out)
	}
	if err != nil {
		return err
	}
	s.report.Head = s.at.rev
	return proveNew(ctx, out, s.at)
}

// visit takes a group that holds.
func (s *salvager) visit(p *passed, _ bool) error {
	source := &s.report.Source
	switch {
	case p.end <= source.End:
		return s.keep(p)
	case s.opts.Prefix:
		return errEnough
	case p.start >= source.last || p.Derived():
		return nil
	}
	return s.save(p)
}

// keep writes a group of the sound prefix as it is. Its place is the same
// unless derived bytes before it were lost; then derived groups, whose content
// may name places, are lost as well, and change nothing but cost.
func (s *salvager) keep(p *passed) error {
	s.moved = s.moved || s.geo.Start(s.at.end) != p.start
	if s.moved && p.Derived() {
		return nil
	}
	if !s.moved {
		s.durable = p.DurableEnd
	}
	h := p.GroupHeader
	if newest := s.head.newest(); newest != nil && h.Derived() {
		here := frame.Place{Offset: p.start, Revision: h.Revision, Digest: h.Digest}
		s.checks[0] = s.checks[0] || here == newest.Check
		s.checks[1] = s.checks[1] || here == newest.Before
	}
	if !h.Derived() {
		s.report.Kept++
		s.mapTo(Moved{h.Revision, h.Revision, h.Revision, h.Revision, false})
	}
	return s.write(&h, p.body)
}

// write appends a group to the new log.
func (s *salvager) write(h *frame.GroupHeader, body []byte) error {
	s.build.Reset(s.at.end, s.at.rev)
	s.at.end, s.at.epoch = s.build.Add(h, body), h.Epoch
	s.build.Seal(s.durable)
	if !h.Derived() {
		s.at.rev, s.at.digest = h.Revision, h.Digest
	}
	err := s.out.put(s.build.Bytes(), s.build.Offset())
	s.build.Trim(2 * maxWrite)
	return err
}

// save writes the records of a commit behind a gap as opaque ones: one commit
// again, or several where they do not fit.
func (s *salvager) save(p *passed) error {
	first := s.at.rev + 1
	most := min(int64(s.id.MaxRecord), (int64(s.id.MaxGroup)-frame.RecordHeaderSize)&^7)
	one := Salvaged{Log: s.head.id.LogID, Revision: p.Revision, Digest: cursor.Digest(p.Digest)}
	for r := range frame.Records(p.body) {
		one.Kind, one.Flags, one.Raw, one.Sum, one.Length = r.Kind, r.Flags, r.Raw, r.Sum, uint32(len(r.Data))
		for at := 0; ; {
			n := min(len(r.Data)-at, int(most)-salvagedHeader)
			one.At, one.Stored = uint32(at), r.Data[at:at+n]
			if err := s.add(p, &one); err != nil {
				return err
			}
			if at += n; at == len(r.Data) {
				break
			}
		}
		one.Index++
	}
	if err := s.commit(p); err != nil {
		return err
	}
	s.report.Saved++
	s.report.Records += uint64(one.Index)
	s.mapTo(Moved{p.Revision, p.Revision, first, s.at.rev, true})
	return nil
}

// add puts a salvaged record into the commit under way.
func (s *salvager) add(p *passed, one *Salvaged) error {
	size := frame.RecordSize(salvagedHeader + len(one.Stored))
	if s.count > 0 && (int64(len(s.body))+size > int64(s.id.MaxGroup) || s.count >= s.id.MaxRecords) {
		if err := s.commit(p); err != nil {
			return err
		}
	}
	s.data = one.append(s.data[:0])
	s.body = frame.AppendRecord(s.body, frame.KindSalvaged, 0, frame.Plain, s.data)
	s.count++
	return nil
}

// commit writes the opaque commit under way.
func (s *salvager) commit(p *passed) error {
	h := frame.GroupHeader{
		Count: s.count, Revision: s.at.rev + 1, Body: int64(len(s.body)), Prev: s.at.digest,
		Epoch: max(s.at.epoch, 1), Time: p.Time,
	}
	h.Digest = h.ChainDigest(s.body)
	err := s.write(&h, s.body)
	s.body, s.count = s.body[:0], 0
	return err
}

// mapTo puts an entry into the map, or lengthens the last one.
func (s *salvager) mapTo(m Moved) {
	list := s.report.Map
	if n := len(list); n > 0 {
		last := &list[n-1]
		inStep := last.OldLast-last.OldFirst == last.NewLast-last.NewFirst && m.NewFirst == m.NewLast
		if inStep && last.Opaque == m.Opaque && last.OldLast+1 == m.OldFirst && last.NewLast+1 == m.NewFirst {
			last.OldLast, last.NewLast = m.OldLast, m.NewLast
			return
		}
	}
	if len(list) >= MaxFindings {
		s.report.Unmap++
		return
	}
	s.report.Map = append(list, m)
}

// writeHeader writes the header area, both slots naming the whole new log, and
// the header of the page in which the retention floor lies.
func (s *salvager) writeHeader(out disk.File) error {
	begin := s.head.begin()
	slot := frame.Slot{
		Epoch: max(s.at.epoch, 1), Durable: s.at.place(), Floor: begin.place(), Generation: 1, Time: s.id.Created,
	}
	slot.Features.Compat = frame.FeatureKeys // for all that is known
	if newest := s.head.newest(); newest != nil {
		slot.Features = newest.Features
		if s.checks[1] {
			slot.Check = newest.Before
		}
		if s.checks[0] {
			slot.Check, slot.Before = newest.Check, slot.Check
		}
	}
	if err := s.writeFloorPage(out, begin); err != nil {
		return err
	}
	return noSpaceOr(writeHeaderArea(out, &s.id, slot))
}

func (s *salvager) writeFloorPage(out disk.File, begin point) error {
	page := s.geo.PageStart(begin.end)
	if page < s.geo.HeaderArea() || page == begin.end {
		return nil
	}
	var b [frame.PageHeaderSize]byte
	if _, err := s.src.ReadAt(b[:], page); err != nil {
		return fmt.Errorf("read at offset %d: %w", page, err)
	}
	h, err := s.head.geo.DecodePage(b[:], page)
	if err != nil { // lost: say that no group begins there, which only costs a reader
		h = frame.PageHeader{Number: s.geo.Page(page), Last: begin.rev}
	}
	s.geo.PutPage(b[:], page, h)
	_, err = out.WriteAt(b[:], page)
	return noSpaceOr(err)
}

// writeHeaderArea writes identity and slots. Both slots say the same, so that
// losing one of them loses nothing.
func writeHeaderArea(out disk.File, id *frame.Identity, slot frame.Slot) error {
	g := id.Geometry()
	area := make([]byte, g.HeaderArea())
	one := id.Encode()
	copy(area[frame.IdentityOffset:], one)
	copy(area[frame.IdentityCopyOffset:], one)
	for _, off := range frame.SlotOffsets {
		slot.Number++
		g.PutSlot(area[off:], off, &slot)
	}
	_, err := out.WriteAt(area, 0)
	return err
}

// proveNew checks every byte of a log that was just written and not published
// yet, and that it ends where it should.
func proveNew(ctx context.Context, f disk.File, at point) error {
	r, err := verifyFile(ctx, f, VerifyOptions{}, plan{workers: runtime.GOMAXPROCS(0), stretch: stretchBytes})
	if err != nil {
		return fmt.Errorf("check the new log: %w", err)
	}
	if len(r.Findings) > 0 {
		w := r.Findings[0]
		return &CorruptError{Offset: w.Offset, Page: w.Page, Revision: w.Revision, What: "new log: " + w.Structure, Err: errors.New(w.What)}
	}
	if r.Head != at.rev || r.End != at.end {
		return fmt.Errorf("%w: the new log ends at revision %d, offset %d, not %d, %d", ErrCorrupt, r.Head, r.End, at.rev, at.end)
	}
	return nil
}
