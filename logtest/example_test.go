package logtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-log/tidemark/logtest"
	"github.com/tidemark-log/tidemark/pagelog"
)

// A host that tells its customers what it has: a till. What it told must be
// there whatever happens to the power.
type till struct {
	log   *pagelog.Log
	coins int
}

func openTill(w *logtest.World) (*till, error) {
	log, err := w.Open("till", pagelog.Options{})
	if err != nil {
		return nil, err
	}
	t := &till{log: log}
	for _, err := range log.Commits(0) {
		if err != nil {
			return nil, err
		}
		t.coins++
	}
	return t, nil
}

func (t *till) put() error {
	var b pagelog.Batch
	b.Append([]byte("a coin"))
	if _, err := t.log.Commit(context.Background(), &b); err != nil {
		return err
	}
	t.coins++
	return nil
}

func Example() {
	w := logtest.New(1)
	log, err := w.Create("till", pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	t := &till{log: log}
	told, wrong := 0, 0
	w.Watch(func(after *logtest.World) { // at every step, on every disk that a power cut leaves
		again, err := openTill(after)
		if err != nil || again.coins < told || again.coins > told+1 {
			wrong++
		}
	})
	for range 5 {
		if err := t.put(); err != nil {
			fmt.Println(err)
		}
		told = t.coins // only now is it told
	}
	w.Watch(nil)
	w.PowerCut()
	again, err := openTill(w)
	fmt.Println("coins:", again.coins, err, "wrong:", wrong)
	// Output: coins: 5 <nil> wrong: 0
}

// A host that tells too early must be found: its test could not fail otherwise.
func TestWatch_FindsAHostThatTellsTooEarly(t *testing.T) {
	w := logtest.New(2)
	log, err := w.Create("till", pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host := &till{log: log}
	told, wrong, disks := 0, 0, 0
	w.Watch(func(after *logtest.World) {
		disks++
		if again, err := openTill(after); err != nil || again.coins < told {
			wrong++
		}
	})
	for range 3 {
		told++ // before it is durable
		if err := host.put(); err != nil {
			t.Fatal(err)
		}
	}
	if wrong == 0 || disks < 10 {
		t.Errorf("%d of %d disks contradict a host that tells too early", wrong, disks)
	}
}
