package pagelog

import (
	"slices"
	"sync"

	"github.com/tidemark-log/tidemark/frame"
)

// stretchBytes is about how long a stretch is that one worker walks. What begins
// in it and takes twice as much is left to the verifier: that bounds a worker's
// memory.
const stretchBytes = 8 << 20

// stretch is a part of the file between two groups, each the first of its page.
type stretch struct {
	from, to int64 // where its first group starts, and the next stretch's
	limit    int64 // the worker reads nothing at or beyond it
	done     chan struct{}

	// What the worker found, once done is closed. Everything before at holds.
	first  point // what the first group says of the history before it
	at     point // how far the walk came; at.end is 0 if nowhere
	proven int64 // the largest durable end any of its groups names
	epoch  uint64
	counts counts
	marks  []mark
	err    error // of the file system
}

// stretches hands out stretches to workers and their results in order.
type stretches struct {
	ordered chan *stretch
	next    *stretch
	quit    chan struct{}
	running sync.WaitGroup
}

// startStretches starts the workers. The verifier must call stop.
func startStretches(v *verifier) *stretches {
	s := &stretches{ordered: make(chan *stretch, 2*v.plan.workers), quit: make(chan struct{})}
	jobs := make(chan *stretch)
	cut := cutter{
		geo: v.geo, from: v.geo.Start(v.walk.at.end), length: max(v.plan.stretch, v.geo.PageSize()),
		win: window{r: v.r, limit: v.size, chunk: frame.PageHeaderSize}, marks: slices.Clone(v.marks),
	}
	s.running.Go(func() {
		defer close(s.ordered)
		defer close(jobs)
		for st := cut.next(); st != nil; st = cut.next() {
			if !s.send(jobs, st) || !s.send(s.ordered, st) {
				return
			}
		}
	})
	for range v.plan.workers {
		w := &walker{geo: v.geo, win: window{r: v.r, chunk: readChunk}}
		s.running.Go(func() {
			for st := range jobs {
				st.err = st.walk(w)
				close(st.done)
			}
		})
	}
	return s
}

// send reports whether a stretch was taken before stop was called.
func (s *stretches) send(to chan<- *stretch, st *stretch) bool {
	select {
	case to <- st:
		return true
	case <-s.quit:
		return false
	}
}

// cutter cuts the file into stretches.
type cutter struct {
	geo    *frame.Geometry
	from   int64 // where the next stretch begins
	length int64 // bytes, about
	win    window
	marks  []mark
}

// next returns the next stretch, or nil at the file's end. It runs up to the
// first group of a page, so that the stretch behind it begins where a page
// header says that a group does.
func (c *cutter) next() *stretch {
	size := c.win.limit
	if c.from >= size {
		return nil
	}
	st := &stretch{
		from: c.from, to: size, limit: min(size, c.from+2*c.length+c.geo.PageSize()),
		marks: slices.Clone(c.marks), done: make(chan struct{}),
	}
	for page := c.geo.PageStart(c.from) + c.length; page < size; page += c.geo.PageSize() {
		b, err := c.win.read(page, frame.PageHeaderSize)
		if err != nil {
			break // the walk will meet it
		}
		if h, err := c.geo.DecodePage(b, page); err == nil && h.First != 0 {
			st.to = page + int64(h.First)
			break
		}
		if frame.IsZero(b) { // and in a hole all that follow
			page = max(page, c.geo.PageStart(nextData(c.win.r, page))-c.geo.PageSize())
		}
	}
	c.from = st.to
	return st
}

// walk passes the groups of the stretch, up to what does not hold or is not as
// it should be: that is the verifier's to judge.
func (s *stretch) walk(w *walker) error {
	defer w.win.drop()
	w.win.limit = s.limit
	if err := trustPage(w, s.from); err != nil {
		return notFault(err)
	}
	s.first = w.at
	for w.geo.Start(w.at.end) < s.to {
		if err := w.next(); err != nil {
			return notFault(err)
		}
		p := &w.cur
		if p.badPage != 0 {
			return nil
		}
		s.at, s.proven, s.epoch = w.at, max(s.proven, p.DurableEnd), max(s.epoch, p.Epoch)
		s.counts.add(p)
		for i := range s.marks {
			s.marks[i].look(p, w.at)
		}
	}
	return nil
}

// at returns the stretch that begins at start, when its worker is done with it,
// or nil if there is none. Those that begin before are dropped.
func (s *stretches) at(start int64) *stretch {
	if s == nil {
		return nil
	}
	for s.next == nil || s.next.from < start {
		next, ok := <-s.ordered
		if !ok {
			return nil
		}
		s.next = next
	}
	if s.next.from > start {
		return nil
	}
	st := s.next
	s.next = nil
	<-st.done
	return st
}

// stop ends the workers and waits for them.
func (s *stretches) stop() {
	if s == nil {
		return
	}
	close(s.quit)
	s.running.Wait()
}

// adopt moves the verifier over what a worker walked, if that carries on the
// history here.
func (v *verifier) adopt(s *stretch) error {
	at := v.walk.at
	if s.err != nil || s.at.end == 0 || s.first.rev != at.rev || s.first.digest != at.digest || s.first.epoch < at.epoch {
		return s.err
	}
	gap, err := v.walk.win.read(at.end, s.from-at.end)
	if err != nil {
		return err
	}
	if badPage, err := v.geo.CheckGap(gap, at.end, at.rev); badPage != 0 || err != nil {
		return nil // the walk says so
	}
	for _, m := range v.marks {
		if !m.isStart && at.end < m.place.Offset && m.place.Offset <= s.from {
			return nil // it lies between groups: the walk says so
		}
	}
	for i := range v.marks {
		if !v.marks[i].seen && s.marks[i].seen {
			v.marks[i] = s.marks[i]
		}
	}
	v.epoch = max(v.epoch, s.epoch)
	v.counts.plus(s.counts)
	v.walk.at = s.at
	v.walk.win.drop()
	v.anchors = append(v.anchors, s.at)
	v.progress.at(s.at.end, v.size)
	return v.raise(s.proven)
}
