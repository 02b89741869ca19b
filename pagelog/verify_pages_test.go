package pagelog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
)

// TestVerify_L51_EveryWrongPageHeader: every page header below the proven end
// that does not hold is in the report, whatever else is damaged: another page
// header, the body of a group, or both slots, so that only later headers prove
// the end; with one worker and with several.
func TestVerify_L51_EveryWrongPageHeader(t *testing.T) {
	const page = 4096
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "log")
	l, err := Create(path, CreateOptions{PageSize: page}, Options{ZeroAhead: ZeroAheadOff, CheckpointEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{100, 9000, 30, 5000, 12000, 3900, 200, 8000, 10} {
		var b Batch
		b.Append(bytes.Repeat([]byte{7}, size))
		if _, err := l.Commit(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
	end := l.head.end
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, seen := l.geo.HeaderArea(), 0
	check := func(b []byte, wrong ...int64) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, workers := range []int{1, 3} {
			r, err := Verify(ctx, path, VerifyOptions{Workers: workers})
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			for _, off := range wrong {
				named := false
				for _, f := range r.Findings {
					named = named || f.Page == off/page && (f.Structure == "page header" || f.Offset <= off)
				}
				if off < r.Durable && !named {
					t.Errorf("%d workers, pages at %d: the one at %d, below the proven end %d, is not in %+v", workers, wrong, off, r.Durable, r.Findings)
				}
				if off < r.Durable {
					seen++
				}
			}
		}
	}
	for _, slots := range []bool{true, false} {
		base := bytes.Clone(sound)
		if !slots {
			for _, off := range frame.SlotOffsets {
				clear(base[off : off+frame.SlotSize])
			}
		}
		for i := first; i < end; i += page {
			b := bytes.Clone(base)
			b[i+9] ^= 4
			check(b, i)
			for j := i + page; j < end; j += page {
				two := bytes.Clone(b)
				two[j+9] ^= 4
				check(two, i, j)
				body := bytes.Clone(b) // and a bit of a body, before and behind
				body[j+2000] ^= 1
				check(body, i)
				body = bytes.Clone(base)
				body[i+2000] ^= 1
				body[j+9] ^= 4
				check(body, j)
			}
		}
	}
	if seen < 500 {
		t.Errorf("%d wrong headers were looked for", seen)
	}
	t.Logf("%d wrong headers were looked for", seen)
}
