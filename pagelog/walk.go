package pagelog

import (
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/frame"
)

// point is a place between two groups: the raw end of the one before, and the
// history that ends there.
type point struct {
	end    int64
	rev    uint64 // of the last data group
	digest uint64 // of the last data group
	epoch  uint64 // of the last group of any kind
	last   last
}

// last names the last group before a point by what its header says, so that a
// writer can see whether the file still holds it. Zero: not known, or there is
// none.
type last struct {
	start  int64
	digest uint64
}

// Why no group follows a point, besides the sentinels of package frame.
var (
	errEnd      = errors.New("the file ends here")
	errChain    = errors.New("does not continue the history before it")
	errEpoch    = errors.New("written by an earlier writer")
	errBoundary = errors.New("acknowledged end is not the end of a group")
)

// fault says why no group follows a point. It is not yet a verdict: whether it
// means the end of the log, a torn write or corruption is for recover.go and
// judge.go to say.
type fault struct {
	off      int64 // offset of what is wrong
	what     string
	err      error
	header   *frame.GroupHeader // the group's header, if it held
	complete bool               // all of the group holds, but it does not fit the history
}

func (f *fault) Error() string { return fmt.Sprintf("%s at offset %d: %v", f.what, f.off, f.err) }
func (f *fault) Unwrap() error { return f.err }

// located turns a fault behind at into the error a user sees.
func (f *fault) located(g *frame.Geometry, at point) *CorruptError {
	return &CorruptError{Offset: f.off, Page: g.Page(f.off), Revision: at.rev + 1, What: f.what, Err: f.err}
}

// passed is a valid group that the walker has just passed.
type passed struct {
	frame.GroupHeader
	before  point  // where the walker stood
	start   int64  // offset of the group header
	end     int64  // raw end
	body    []byte // records; valid until the walker's next step
	badPage int64  // offset of a page header in its extent that is wrong, or 0
}

// walker steps forward from group to group. It validates every byte of a group
// before it says anything of it. It belongs to one goroutine.
type walker struct {
	geo  *frame.Geometry
	win  window
	at   point
	cur  passed // the group passed last
	tail *tail  // if set, gets the raw bytes of the groups passed

	candidate passed // the group being validated
}

// next passes the group behind w.at. The error is a *fault if there is no such
// group, else what the file system said; w.at has then not moved.
func (w *walker) next() error {
	err := w.step()
	if err != nil {
		w.win.drop()
	}
	return err
}

func (w *walker) step() error {
	start := w.geo.Start(w.at.end)
	gapLen := start - w.at.end
	head, err := w.win.read(w.at.end, gapLen+frame.GroupHeaderSize)
	if err != nil {
		return err
	}
	if int64(len(head)) < gapLen+frame.GroupHeaderSize {
		return &fault{off: start, what: "group header", err: errEnd}
	}
	p := &w.candidate
	*p = passed{before: w.at, start: start}
	if p.GroupHeader, err = w.geo.DecodeGroup(head[gapLen:], start); err != nil {
		return &fault{off: start, what: "group header", err: err}
	}
	if p.badPage, err = w.geo.CheckGap(head[:gapLen], w.at.end, w.at.rev); err != nil {
		return p.fault(w.at.end, "bytes before the group", err)
	}
	p.end = w.geo.End(start, p.Body)
	if p.end < 0 || p.end > w.win.limit {
		return p.fault(start, fmt.Sprintf("group of %d bytes", p.Body), errEnd)
	}
	return w.pass(p)
}

// pass validates the body of a group whose header holds, and its place in the
// history.
func (w *walker) pass(p *passed) error {
	raw, err := w.win.read(p.before.end, p.end-p.before.end)
	if err != nil {
		return err
	}
	if int64(len(raw)) < p.end-p.before.end {
		return p.fault(p.start, "group", errEnd)
	}
	mark := w.tail.add(p.before.end, raw)
	body, badPage := w.geo.Gather(raw[p.start-p.before.end:], &p.GroupHeader, p.start)
	if p.badPage == 0 {
		p.badPage = badPage
	}
	if err := p.Check(body); err != nil {
		w.tail.cut(mark)
		return p.fault(p.start, "group", err)
	}
	if err := fits(w.at, &p.GroupHeader); err != nil {
		w.tail.cut(mark)
		f := p.fault(p.start, "group", err)
		f.complete = true
		return f
	}
	p.body = body
	w.cur = *p
	w.at.end, w.at.epoch, w.at.last = p.end, p.Epoch, last{p.start, p.Digest}
	if !p.Derived() {
		w.at.rev, w.at.digest = p.Revision, p.Digest
	}
	return nil
}

// fault says what is wrong with a group whose header holds.
func (p *passed) fault(off int64, what string, err error) *fault {
	h := p.GroupHeader
	return &fault{off: off, what: what, err: err, header: &h}
}

// fits reports whether a group with this header carries on the history at a
// point.
func fits(at point, h *frame.GroupHeader) error {
	want := at.rev
	if !h.Derived() {
		want++
	}
	switch {
	case h.Revision != want || h.Prev != at.digest:
		return errChain
	case h.Epoch < at.epoch:
		return errEpoch
	}
	return nil
}

// trust puts the walker before a group that starts at start, taking its own
// word for the history before it. The group must be confirmed by what follows.
func (w *walker) trust(start int64) error {
	head, err := w.win.read(start, frame.GroupHeaderSize)
	if err != nil {
		return err
	}
	if len(head) < frame.GroupHeaderSize {
		return &fault{off: start, what: "group header", err: errEnd}
	}
	h, err := w.geo.DecodeGroup(head, start)
	if err != nil {
		return &fault{off: start, what: "group header", err: err}
	}
	w.at = point{end: start, rev: h.Revision, digest: h.Prev, epoch: h.Epoch}
	if w.geo.Start(start) != start { // behind a page header, where the alignment does not reach
		w.at.end = start - frame.PageHeaderSize
	}
	if !h.Derived() {
		w.at.rev--
	}
	return nil
}

// window is a stretch of the file in memory, for reading forward.
type window struct {
	r     io.ReaderAt
	limit int64 // nothing at or beyond this offset is read: the file's size, or less
	chunk int   // bytes read at a time
	off   int64 // file offset of buf[0]
	buf   []byte
	reads *int64 // counts bytes read, if set
}

// read returns the n bytes at off, fewer where the limit or the file ends. The
// slice is valid, and the caller's to change, until the next read. Errors are
// the file system's.
func (w *window) read(off, n int64) ([]byte, error) {
	n = min(n, w.limit-off)
	if n <= 0 {
		return nil, nil
	}
	if at := off - w.off; at >= 0 && at+n <= int64(len(w.buf)) {
		return w.buf[at : at+n : at+n], nil
	}
	if err := w.fill(off, n); err != nil {
		return nil, err
	}
	n = min(n, int64(len(w.buf)))
	return w.buf[:n:n], nil
}

// fill makes the window begin at off and hold at least n bytes if the file
// does.
func (w *window) fill(off, n int64) error {
	want := min(max(n, int64(w.chunk)), w.limit-off)
	have := 0
	old := w.buf
	if at := off - w.off; at >= 0 && at < int64(len(old)) {
		old = old[at:]
	} else {
		old = nil
	}
	if int64(cap(w.buf)) < want || cap(w.buf) > 8*max(w.chunk, int(want)) {
		w.buf = make([]byte, want)
	}
	w.buf = w.buf[:cap(w.buf)]
	have = copy(w.buf, old)
	w.buf, w.off = w.buf[:want], off
	got, err := w.r.ReadAt(w.buf[have:], off+int64(have))
	if w.reads != nil {
		*w.reads += int64(got)
	}
	w.buf = w.buf[:have+got]
	if err != nil && !errors.Is(err, io.EOF) {
		w.drop()
		return fmt.Errorf("read at offset %d: %w", off, err)
	}
	return nil
}

// drop forgets what was read, because the file may have changed or the buffer
// was changed in place.
func (w *window) drop() { w.buf = w.buf[:0] }

// tail keeps the raw bytes of the last groups passed: what recovery writes
// again, from the very buffer that was verified.
type tail struct {
	keep int64 // groups that end at or below this offset are not kept
	from int64 // file offset of buf[0]
	buf  []byte
}

// add appends the bytes at off and returns what cut takes to undo it.
func (t *tail) add(off int64, raw []byte) int {
	if t == nil {
		return 0
	}
	if off+int64(len(raw)) <= t.keep {
		t.buf = t.buf[:0]
		return 0
	}
	if t.from+int64(len(t.buf)) != off {
		t.from, t.buf = off, t.buf[:0]
	}
	mark := len(t.buf)
	t.buf = append(t.buf, raw...)
	return mark
}

func (t *tail) cut(mark int) {
	if t != nil {
		t.buf = t.buf[:mark]
	}
}

// advance drops what lies below off, now and from now on.
func (t *tail) advance(off int64) {
	t.keep = max(t.keep, off)
	if n := off - t.from; n > 0 {
		n = min(n, int64(len(t.buf)))
		t.buf = t.buf[:copy(t.buf, t.buf[n:])]
		t.from += n
	}
}

// endAt cuts what lies at or beyond off.
func (t *tail) endAt(off int64) {
	if n := off - t.from; n >= 0 && n < int64(len(t.buf)) {
		t.buf = t.buf[:n]
	}
}
