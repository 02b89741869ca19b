package logtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/logtest"
	"github.com/tidemark-log/tidemark/pagelog"
)

func newLog(t *testing.T, seed uint64) (*logtest.World, *pagelog.Log) {
	t.Helper()
	w := logtest.New(seed)
	log, err := w.Create("log", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w, log
}

func commit(log *pagelog.Log, completeOnly bool, text string) error {
	b := pagelog.Batch{CompleteOnly: completeOnly}
	b.Append([]byte(text))
	_, err := log.Commit(context.Background(), &b)
	return err
}

func head(t *testing.T, w *logtest.World) uint64 {
	t.Helper()
	log, err := w.Open("log", pagelog.Options{})
	if err != nil {
		t.Fatalf("open: %v\n%s", err, w.History())
	}
	defer w.Kill()
	return log.Head().Revision
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPowerCut_KeepsWhatWasAcknowledged(t *testing.T) {
	lost := 0
	for seed := range uint64(40) {
		w, log := newLog(t, seed)
		must(t, commit(log, false, "one"))
		must(t, commit(log, true, "two"))
		w.PowerCut()
		if err := commit(log, false, "three"); !errors.Is(err, pagelog.ErrUncertain) {
			t.Fatalf("a dead log: %v", err)
		}
		switch head(t, w) {
		case 1:
			lost++
		case 2:
		default:
			t.Fatalf("seed %d: head %d", seed, head(t, w))
		}
	}
	if lost == 0 || lost == 40 {
		t.Errorf("of 40 power cuts %d lost a commit that was not durable", lost)
	}
}

func TestPowerCut_SameSeedSameDisk(t *testing.T) {
	var first []byte
	for range 2 {
		w, log := newLog(t, 3)
		must(t, commit(log, true, strings.Repeat("x", 3000)))
		w.PowerCut()
		if b := w.Bytes("log"); first == nil {
			first = b
		} else if string(b) != string(first) {
			t.Error("the same seed gave two disks")
		}
	}
}

func TestKill_KeepsEverythingWritten(t *testing.T) {
	w, log := newLog(t, 1)
	must(t, commit(log, true, "one"))
	w.Kill()
	if h := head(t, w); h != 1 {
		t.Errorf("head %d", h)
	}
}

func TestFaults(t *testing.T) {
	w, log := newLog(t, 1)
	w.FailSync(1)
	if err := commit(log, false, "one"); !errors.Is(err, pagelog.ErrUncertain) {
		t.Errorf("a failed sync: %v", err)
	}
	if err := commit(log, false, "two"); !errors.Is(err, pagelog.ErrPoisoned) {
		t.Errorf("after a failed sync: %v", err)
	}
	w.Kill()
	log, err := w.Open("log", pagelog.Options{})
	must(t, err)
	must(t, commit(log, false, "makes room ahead"))
	w.FailWrite(1, 10)
	if err := commit(log, false, "three"); !errors.Is(err, pagelog.ErrUncertain) {
		t.Errorf("a failed write: %v", err)
	}
	w.Kill()
	log, err = w.Open("log", pagelog.Options{})
	must(t, err)
	before := log.Head().Revision
	w.FillDisk()
	if err := commit(log, false, strings.Repeat("y", 100_000)); !errors.Is(err, pagelog.ErrNoSpace) || errors.Is(err, pagelog.ErrUncertain) {
		t.Errorf("a full disk: %v", err)
	}
	w.MakeRoom()
	must(t, commit(log, false, strings.Repeat("y", 100_000)))
	if h := log.Head().Revision; h != before+1 {
		t.Errorf("head %d, before %d", h, before)
	}
}

func TestEachCut_CountsAndLeavesTheWorldAlone(t *testing.T) {
	w, log := newLog(t, 1)
	must(t, commit(log, false, "one"))
	if n := w.EachCut(func(*logtest.World) {}); n != 1 {
		t.Errorf("%d disks with nothing in flight", n)
	}
	must(t, commit(log, true, "two"))
	heads := map[uint64]int{}
	if n := w.EachCut(func(after *logtest.World) { heads[head(t, after)]++ }); n < 2 || heads[1] == 0 || heads[2] == 0 {
		t.Errorf("%d disks, heads %v", n, heads)
	}
	must(t, commit(log, false, "three")) // the world itself goes on
}

func TestPut_RestoresACopy(t *testing.T) {
	w, log := newLog(t, 1)
	must(t, commit(log, false, "one"))
	backup := w.Bytes("log")
	must(t, commit(log, false, "two"))
	last := log.Head()
	w.Kill()
	w.Put("log", backup)
	_, err := w.Open("log", pagelog.Options{Expect: &pagelog.Expect{Revision: last.Revision, Digest: last.Digest}})
	if !errors.Is(err, pagelog.ErrLostCommits) {
		t.Errorf("a restored copy: %v", err)
	}
	if w.Bytes("absent") != nil {
		t.Error("a file that does not exist has bytes")
	}
}
