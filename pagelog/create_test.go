package pagelog

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
)

// TestL29_CreatedByManyAtOnce: a creation may sweep what another has made and
// not locked yet; both must still end as one log, or as fs.ErrExist.
func TestL29_CreatedByManyAtOnce(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "a.log")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				l, err := Create(path, CreateOptions{}, Options{})
				if err == nil {
					err = l.Close()
				}
				if err != nil && !errors.Is(err, fs.ErrExist) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if names, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".a.log.tmp-*")); err != nil || len(names) > 0 {
			t.Errorf("left over: %v %v", names, err)
		}
	}
}
