package pagelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// VerifyOptions is how a log is checked. The zero value is a good choice.
type VerifyOptions struct {
	// Workers check stretches of the file side by side; 0: one per processor
	// that Go uses. The report does not depend on it.
	Workers int
	// Progress, if set, is told how many bytes of the file are checked, of how
	// many. It is called by the goroutine that called Verify; done never falls
	// and ends at total.
	Progress func(done, total int64)
	// AllowAnyFileSystem accepts network and user-space file systems.
	AllowAnyFileSystem bool
}

// VerifyReport says what is in a log and what is wrong with it.
type VerifyReport struct {
	LogID     cursor.LogID `json:"log_id"`
	Head      uint64       `json:"head"`        // revision of the last commit of the sound prefix
	Durable   int64        `json:"durable_end"` // offset up to which bytes are proven acknowledged
	End       int64        `json:"end"`         // offset where the sound prefix ends
	Groups    uint64       `json:"groups"`      // commits that hold, also behind damage
	Derived   uint64       `json:"derived"`     // derived groups that hold
	Records   uint64       `json:"records"`     // records of those commits
	Bytes     int64        `json:"bytes"`       // bytes of the file that those groups take
	FileSize  int64        `json:"file_size"`
	Dropped   int64        `json:"dropped"` // bytes below the retention floor, which are not checked
	Intact    []Range      `json:"intact"`  // stretches of history that hold, in the order of the file
	Findings  []Finding    `json:"findings"`
	Uncounted int          `json:"findings_left_out"` // findings beyond the first MaxFindings
	Corrupt   bool         `json:"corrupt"`           // acknowledged or derived bytes are damaged
	Torn      bool         `json:"torn"`              // the file ends in an unacknowledged, incomplete write

	last int64 // offset where the last group that holds ends
}

// Sound reports whether nothing that was acknowledged, and nothing derived from
// it, is damaged. A torn end, one bad slot and one bad copy of the identity are
// sound.
func (r *VerifyReport) Sound() bool { return !r.Corrupt }

// Range is a stretch of history whose every byte holds.
type Range struct {
	First uint64 `json:"first"` // revision of its first commit
	Last  uint64 `json:"last"`  // revision of its last commit
	From  int64  `json:"from"`  // offset of its first byte
	To    int64  `json:"to"`    // offset behind its last byte
}

// Finding is one thing that is not as it should be.
type Finding struct {
	Offset    int64  `json:"offset"`    // byte offset of the structure
	Page      int64  `json:"page"`      // page that holds it
	Revision  uint64 `json:"revision"`  // the first revision it concerns; 0 for none
	Structure string `json:"structure"` // "group header", "slot", …
	What      string `json:"what"`      // what was found, and what was wanted
	Class     string `json:"class"`     // one of the Class constants
}

// Classes of findings.
const (
	ClassTorn    = "torn"    // an unacknowledged write that is not all there: cut by a crash, or not yet
	ClassCorrupt = "corrupt" // damage to acknowledged or derived bytes
	ClassBridged = "bridged" // damage that only hit derived bytes; history goes on behind it
	ClassNote    = "note"    // worth knowing, and no harm
)

// MaxFindings bounds the findings, and the ranges, of a report. The rest is
// counted.
const MaxFindings = 1000

// Verify checks every byte of the log at path, reading only, in parallel and in
// bounded memory: a few megabytes per worker, and one group. It may run beside
// a live writer; what is not complete at the end then is torn, which here means
// not yet. After damage it goes on and finds the damage behind it.
//
// What is wrong with the log is in the report. Errors: ErrNotALog,
// ErrUnsupported, ErrReplaced, ErrFileSystem, fs.ErrNotExist, fs.ErrPermission,
// the context's, and what the file system says.
func Verify(ctx context.Context, path string, o VerifyOptions) (VerifyReport, error) {
	var report VerifyReport
	err := inDir(path, func(env Env, name string) (err error) {
		if report, err = VerifyIn(ctx, env, name, o); err == nil {
			err = env.Dir.Close()
		}
		return err
	})
	return report, err
}

// VerifyIn is Verify in a given world; see Env. The directory stays open.
func VerifyIn(ctx context.Context, env Env, name string, o VerifyOptions) (VerifyReport, error) {
	if o.Workers < 0 {
		return VerifyReport{}, fmt.Errorf("option Workers is %d, it must not be negative", o.Workers)
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if _, err := admit(env.Dir, o.AllowAnyFileSystem); err != nil {
		return VerifyReport{}, err
	}
	f, err := openNamed(env.Dir, name, disk.ReadOnly)
	if err != nil {
		return VerifyReport{}, err
	}
	report, err := verifyFile(ctx, f, o, plan{workers: o.Workers, stretch: stretchBytes})
	return report, errors.Join(err, f.Close())
}

// plan is how one check goes about it.
type plan struct {
	workers int
	stretch int64   // bytes that one worker walks at a time
	visit   visitor // if set, gets every group that holds, in order; then there is one worker
}

// visitor gets a group that holds; gap says that history is interrupted before
// it. The group is valid until it returns.
type visitor func(p *passed, gap bool) error

// verifyFile checks the log in f.
func verifyFile(ctx context.Context, f disk.File, o VerifyOptions, p plan) (VerifyReport, error) {
	const tries = 3 // a writer that opens the log may cut a torn end under us
	progress := progress{tell: o.Progress}
	for try := 1; ; try++ {
		v, err := newVerifier(ctx, f, p, &progress)
		if err != nil {
			return VerifyReport{}, err
		}
		err = v.run()
		if errors.Is(err, errChanged) && try < tries && p.visit == nil {
			continue
		}
		if err != nil {
			return VerifyReport{}, err
		}
		progress.finish(v.size)
		return v.report, nil
	}
}

var errChanged = fmt.Errorf("%w, or opened by another writer, while it was read", ErrReplaced)

// add puts a finding into the report.
func (v *verifier) add(class, structure, what string, off int64, rev uint64) {
	v.report.Corrupt = v.report.Corrupt || class == ClassCorrupt || class == ClassBridged
	v.report.Torn = v.report.Torn || class == ClassTorn
	if len(v.report.Findings) >= MaxFindings {
		v.report.Uncounted++
		return
	}
	v.report.Findings = append(v.report.Findings, Finding{
		Offset: off, Page: v.geo.Page(off), Revision: rev, Structure: structure, What: what, Class: class,
	})
}

// addFault puts what the walk met at v.walk.at into the report.
func (v *verifier) addFault(class string, f *fault, more string) {
	structure := f.what
	switch {
	case v.inGap(f):
		structure = "padding"
	case f.header != nil:
		structure = "group"
	}
	what := f.err.Error()
	if f.what != structure {
		what = f.what + ": " + what
	}
	v.add(class, structure, what+more, f.off, v.walk.at.rev+1)
}

// inGap reports whether what is wrong is the bytes between two groups.
func (v *verifier) inGap(f *fault) bool {
	return f.header != nil && f.off != v.geo.Start(v.walk.at.end)
}

// sorted brings the findings into the order of the file.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Offset, b.Offset) })
	return findings
}

// progress tells how far checking is. It never goes back, also if a log is
// checked again.
type progress struct {
	tell func(done, total int64)
	last int64
}

const progressEvery = 1 << 20

func (p *progress) at(done, total int64) {
	if p.tell != nil && done >= p.last+progressEvery && done < total {
		p.last = done
		p.tell(done, total)
	}
}

func (p *progress) finish(total int64) {
	if p.tell != nil {
		p.tell(total, total)
	}
}
