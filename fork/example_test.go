package fork_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/pagelog"
)

// A run went wrong after its second commit: try again from there, and leave the
// first try as it is.
func Example() {
	dir, err := os.MkdirTemp("", "fork-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run, try := filepath.Join(dir, "run.log"), filepath.Join(dir, "try.log")
	write(run, "ask", "answer", "wrong turn")

	made, err := fork.Create(context.Background(), run, try, fork.Options{At: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("forked after revision", made.Revision, "and begun with revision", made.Head)

	write(try, "better turn")
	fmt.Println(read(run))
	fmt.Println(read(try))
	// Output:
	// forked after revision 2 and begun with revision 3
	// [ask answer wrong turn]
	// [ask answer better turn]
}

// write commits records to a log, which it makes if there is none.
func write(path string, records ...string) {
	l, err := pagelog.Create(path, pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		if l, err = pagelog.Open(path, pagelog.Options{}); err != nil {
			log.Fatal(err)
		}
	}
	for _, r := range records {
		var b pagelog.Batch
		b.Append([]byte(r))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			log.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}
}

// read returns the host's records of a log.
func read(path string) (records []string) {
	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for g, err := range r.Commits(0) {
		if err != nil {
			log.Fatal(err)
		}
		for rec, err := range g.Records() {
			if err != nil {
				log.Fatal(err)
			}
			if rec.Kind == 0 { // the fork record has a kind of its own
				records = append(records, string(rec.Data))
			}
		}
	}
	return records
}
