package fuzz

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/pagelog"
)

// seeds are one program for every kind of step, over every original.
func seeds(f *testing.F) {
	for _, i := range []byte{0, 1, 2, 3, 4, 5, 6, 7, 15} {
		f.Add([]byte{i})
		for at := range 40 { // a bit in the body of each group
			f.Add([]byte{i, 0, byte(6 + 3*at), 30, 0, 0, 0, 1, 0})
		}
		for op := range 13 {
			f.Add([]byte{i, byte(op), byte(6 + 3*op), 1, byte(op), 40, 2, 9, 8})
			f.Add([]byte{i, byte(op), byte(op), byte(op), 6, 3, 0, 7 * i, 0, 4, 5, 255, 0, 0, 0, 0, 0})
		}
	}
}

// FuzzFile opens an edited log for writing, reads it, and verifies it. No edit
// makes the engine panic, allocate beyond its bounds, or show what nobody
// committed; accidents leave a prefix of the log or a located error, and what
// the file still proves acknowledged is kept or refused, never cut off.
func FuzzFile(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 1+12*stepSize {
			return
		}
		runProgram(program).examine(t)
	})
}

// FuzzAbove edits only what lies at or above the proven end: then the log
// always opens, and is never shorter than what was acknowledged.
func FuzzAbove(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 1+12*stepSize {
			return
		}
		e := runProgram(program)
		copy(e.b, e.original.b[:min(e.floor, int64(len(e.b)))])
		if int64(len(e.b)) < e.floor {
			e.b = append([]byte(nil), e.original.b[:e.floor]...)
		}
		if e.class == forged || e.class == mixed { // a header may prove more, or another history
			return
		}
		e.examine(t)
		w := newWorld(e.b)
		l, err := pagelog.OpenIn(w.env(), logName, pagelog.Options{})
		if err != nil {
			t.Fatalf("only bytes above the proven end %d were changed, from %d on: %v", e.floor, e.low, err)
		}
		if end := l.Report().End; end < e.floor {
			t.Fatalf("opened up to %d, %d is acknowledged", end, e.floor)
		}
	})
}

// FuzzSalvage saves what holds of an edited log. The new log is sound, begins
// with the sound prefix of the old one as it was, and the old one is left alone.
func FuzzSalvage(f *testing.F) {
	seeds(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 1+12*stepSize {
			return
		}
		e := runProgram(program)
		from, to := filepath.Join(dir, "old"), filepath.Join(dir, "new")
		if err := os.WriteFile(from, e.b, 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Remove(to) }()
		var rep pagelog.SalvageReport
		var err error
		allocated(t, "salvage", func() {
			rep, err = pagelog.Salvage(context.Background(), from, to, pagelog.SalvageOptions{AllowAnyFileSystem: true})
		})
		if b, rerr := os.ReadFile(from); rerr != nil || string(b) != string(e.b) {
			t.Fatalf("the old log was changed (%v)", rerr)
		}
		if err != nil {
			e.refused(t, "salvage", err)
			if _, serr := os.Stat(to); serr == nil {
				t.Error("salvage failed and left a file")
			}
			return
		}
		e.saved(t, to, rep)
	})
}

// saved checks a salvaged log.
func (e *edited) saved(t *testing.T, path string, rep pagelog.SalvageReport) {
	v, err := pagelog.Verify(context.Background(), path, pagelog.VerifyOptions{Workers: 1, AllowAnyFileSystem: true})
	if err != nil || v.Corrupt || v.Torn || v.Head != rep.Head {
		t.Fatalf("the new log: %+v, %v; salvage said %+v", v, err, rep)
	}
	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{AllowAnyFileSystem: true})
	if err != nil {
		t.Fatal(err)
	}
	commits, err := read(r.Commits(r.Oldest() - 1))
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	if uint64(len(commits)) < rep.Kept {
		t.Fatalf("%d commits, %d were kept", len(commits), rep.Kept)
	}
	e.prefix(t, "salvaged", commits[:rep.Kept])
	if rep.Kept != rep.Source.Head-(r.Oldest()-1) {
		t.Errorf("kept %d commits of a sound prefix up to %d", rep.Kept, rep.Source.Head)
	}
	if e.class != accident {
		return
	}
	for _, c := range commits[rep.Kept:] { // opaque records: each of a commit that was written
		if len(c.records) == 0 || frame.KindSalvaged == 0 {
			t.Errorf("revision %d saves nothing", c.revision)
		}
	}
}
