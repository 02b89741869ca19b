package simdisk

import "math/rand/v2"

// Mode is how sizes and names relate to each other when the power goes.
type Mode int

// The two modes of rule 3, and both one after the other.
const (
	Strict  Mode = iota // any subset of the sizes and names in flight
	Journal             // a prefix of the metadata operations
	Both                // Strict, then Journal
)

// ImageOptions says which images to build. The zero value is strict, without
// garbage, with default limits.
type ImageOptions struct {
	Mode    Mode
	MaxBits int    // all images are built if there are at most 2^MaxBits, at most 30; 0 means 12
	Samples int    // random images where there are more; 0 means 200, less than 0 none
	Seed    uint64 // of the random images and of garbage
	Garbage bool   // rule 5: unprotected sectors in flight may end as garbage

	// Protected reports whether the sector at this offset of the file holds
	// acknowledged bytes, so that it ends as one of its versions. Nil means
	// that none does. It is asked once per sector in flight, with the last
	// name the file had, and must not use the FS.
	Protected func(name string, off int64) bool
}

// ImageStats counts what EachImage did.
type ImageStats struct {
	Tried      int  // combinations of outcomes that were looked at
	Distinct   int  // images among them that differ, each visited once
	Exhaustive bool // no combination was left out
}

// Add sums the counts up; the sum is exhaustive if every part is.
func (a ImageStats) Add(b ImageStats) ImageStats {
	return ImageStats{
		Tried:      a.Tried + b.Tried,
		Distinct:   a.Distinct + b.Distinct,
		Exhaustive: a.Exhaustive && b.Exhaustive,
	}
}

// EachImage calls visit with the disk images that a power cut at this moment
// may leave behind, each a file system of its own whose whole content is
// durable, until visit returns false. Images that are equal are visited once.
//
// It builds all of them if there are at most 2^MaxBits. Otherwise it builds
// those that find most: what is in flight landing in the order in which it was
// written, in reverse, and metadata first; subsets of whole operations, and
// each operation torn in two; one thing missing and one thing only; one sector
// of garbage; and Samples random ones.
//
// An image is valid until visit returns and its memory is used again for the
// next one; Clone makes one that stays. The handles opened in an image end with
// it. EachImage may be called by the hook of Before and within visit.
// Operations on s meanwhile do not show in the images.
func (s *FS) EachImage(opts ImageOptions, visit func(img *FS) bool) ImageStats {
	s.mu.Lock()
	e := s.work
	s.work = nil // a second call meanwhile makes one of its own
	if e == nil {
		e = newEnumerator()
	}
	e.start(s, opts, visit)
	s.mu.Unlock()
	e.run()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = e
	return e.stats
}

// RandomImage returns one of the images a power cut at this moment may leave
// behind, chosen by rng, to keep.
func (s *FS) RandomImage(opts ImageOptions, rng *rand.Rand) *FS {
	e := newEnumerator()
	s.mu.Lock()
	e.start(s, opts, nil)
	s.mu.Unlock()
	mode := opts.Mode
	if mode == Both {
		mode = Mode(rng.IntN(2))
	}
	if mode == Strict {
		e.allowAll()
	} else {
		e.allowUpTo(e.plan.cuts[rng.IntN(len(e.plan.cuts))])
	}
	e.choose(rng)
	e.build()
	return e.img
}
