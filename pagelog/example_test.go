package pagelog_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-log/tidemark/pagelog"
)

// exampleDir is a directory of its own for an example, and what removes it.
func exampleDir() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "tidemark-example-")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) } // what is left over is in the way of nobody
}

// The README's program: two records that are there together or not at all, and
// on disk when Commit returns.
func Example() {
	dir, remove := exampleDir()
	defer remove()

	l, err := pagelog.Create(filepath.Join(dir, "hello.log"), pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var batch pagelog.Batch
	batch.Append([]byte("hello"))
	batch.Append([]byte("world"))
	commit, err := l.Commit(context.Background(), &batch) // on disk when it returns
	if err != nil {
		log.Fatal(err)
	}
	for group, err := range l.Commits(commit.Revision - 1) {
		if err != nil {
			log.Fatal(err)
		}
		for record, err := range group.Records() {
			fmt.Println(group.Revision, string(record.Data), err)
		}
	}
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 hello <nil>
	// 1 world <nil>
}

// Follow a log that somebody else writes, here another goroutine, as well
// another process. The cursor says how far one came: kept in a safe place, it is
// where to go on after a restart, and it is refused if the file has another
// history by then.
func ExampleReader_Follow() {
	dir, remove := exampleDir()
	defer remove()
	path := filepath.Join(dir, "run.log")

	w, err := pagelog.Create(path, pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		var batch pagelog.Batch
		for _, word := range []string{"ready", "steady", "go"} {
			batch.Reset()
			batch.Append([]byte(word))
			if _, err := w.Commit(context.Background(), &batch); err != nil {
				written <- err
				return
			}
		}
		written <- w.Close()
	}()

	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{Durable: true})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for group, err := range r.Follow(ctx, 0) { // 0: from the first commit on
		if err != nil {
			log.Fatal(err)
		}
		for record, err := range group.Records() {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(group.Revision, string(record.Data))
		}
		cursor := r.Cursor(group.Commit) // after the commit was handled
		if cursor.Revision == 3 {
			break
		}
	}
	if err := errors.Join(<-written, r.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 ready
	// 2 steady
	// 3 go
}

// Handle a commit whose outcome is unknown: the write or the sync failed, or the
// file was taken away. Repeating it at once could write it twice. Close the log,
// open it again, and look: opening decides by the bytes.
func ExampleLog_Commit_uncertain() {
	dir, remove := exampleDir()
	defer remove()
	path := filepath.Join(dir, "run.log")

	l, err := pagelog.Create(path, pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var batch pagelog.Batch
	batch.Append([]byte("pay 10"))
	before := l.Head().Revision

	// What makes this commit uncertain: somebody moves the file away.
	moved := filepath.Join(dir, "moved.log")
	if err := os.Rename(path, moved); err != nil {
		log.Fatal(err)
	}
	_, err = l.Commit(context.Background(), &batch)
	switch {
	case err == nil: // it is on disk
		fmt.Println("committed")
	case !errors.Is(err, pagelog.ErrUncertain): // nothing reached the file
		fmt.Println("rejected, trying again is safe")
	default:
		fmt.Println("unknown: close, open again and look")
		_ = l.Close() // it returns why the log is poisoned, which is known
		if err := os.Rename(moved, path); err != nil {
			log.Fatal(err)
		}
		if l, err = pagelog.Open(path, pagelog.Options{}); err != nil {
			log.Fatal(err)
		}
		found := false
		for group, err := range l.Commits(before) {
			if err != nil {
				log.Fatal(err)
			}
			for record := range group.Records() {
				found = found || string(record.Data) == "pay 10"
			}
		}
		fmt.Println("it is there:", found)
	}
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// unknown: close, open again and look
	// it is there: true
}
