package observer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/observer"
	"github.com/tidemark-log/tidemark/pagelog"
)

// Watch a log: the state at one revision, then every commit behind it, and
// later from where one was.
func Example_watch() {
	dir, err := os.MkdirTemp("", "watch")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	l, err := pagelog.Create(filepath.Join(dir, "run.log"), pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	say := func(text string) {
		var b pagelog.Batch
		b.Append([]byte(text))
		if _, err := l.Commit(ctx, &b); err != nil {
			log.Fatal(err)
		}
	}
	say("one")
	say("two")

	hub := observer.NewHub(l, observer.Options{})
	defer hub.Close()
	sub, err := hub.Attach(ctx, observer.Request{Baseline: true})
	if err != nil {
		log.Fatal(err)
	}
	say("three") // not in the baseline, which is at revision 2
	for page, err := range sub.Baseline(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range page.Commits {
			fmt.Printf("baseline at %d: %s\n", page.At.Revision, c.Records[0].Data)
		}
	}
	var last cursor.Cursor
	for event, err := range sub.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if event.Kind == observer.Committed {
			fmt.Printf("revision %d: %s\n", event.Commit.Revision, event.Commit.Records[0].Data)
			last = event.At
			break
		}
	}
	if err := sub.Close(); err != nil {
		log.Fatal(err)
	}

	say("four") // while nobody watches
	sub, err = hub.Attach(ctx, observer.Request{After: last})
	if err != nil {
		log.Fatal(err)
	}
	defer sub.Close()
	for event, err := range sub.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if event.Kind == observer.Committed {
			fmt.Printf("revision %d: %s\n", event.Commit.Revision, event.Commit.Records[0].Data)
			break
		}
	}
	// Output:
	// baseline at 2: one
	// baseline at 2: two
	// revision 3: three
	// revision 4: four
}
