package oracle

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/tidemark-log/tidemark/pagelog"
)

// Read returns everything in a log, without writing.
func Read(path string, o pagelog.ReaderOptions) ([]Group, error) {
	r, err := pagelog.OpenReader(path, o)
	if err != nil {
		return nil, err
	}
	defer r.Close() // only read
	return After(r, 0)
}

// After returns the commits of a reader behind a revision.
func After(r *pagelog.Reader, revision uint64) ([]Group, error) {
	var groups []Group
	for g, err := range r.Commits(revision) {
		if err != nil {
			return groups, err
		}
		group := Group{Revision: g.Revision}
		for record, err := range g.Records() {
			if err != nil {
				return groups, err
			}
			group.Records = append(group.Records, string(record.Data))
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// Recover opens a log for writing, as the next process would, reads it and
// verifies it. What it returns is durable.
func Recover(path string, o pagelog.Options) ([]Group, error) {
	log, err := pagelog.Open(path, o)
	if err != nil {
		return nil, err
	}
	groups, err := After(log.Reader, 0)
	if closed := log.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return groups, err
	}
	return groups, Verify(path, o.AllowAnyFileSystem)
}

// Verify fails unless every byte of the log is sound.
func Verify(path string, anyFileSystem bool) error {
	v, err := pagelog.Verify(context.Background(), path, pagelog.VerifyOptions{Workers: 1, AllowAnyFileSystem: anyFileSystem})
	if err == nil && !v.Sound() {
		err = fmt.Errorf("verify: %+v", v.Findings)
	}
	return err
}

// FromCat reads what 'cat --json' or 'tail --json' printed. A last line without
// its end is left out.
func FromCat(r io.Reader) ([]Group, error) {
	var groups []Group
	err := EachFromCat(bufio.NewReader(r), func(g Group) { groups = append(groups, g) })
	return groups, err
}

// EachFromCat hands out each commit when it is whole, or when the next one
// begins or the output ends.
func EachFromCat(in *bufio.Reader, each func(Group)) error {
	var g Group
	given := true
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if !given {
				each(g)
			}
			if err == io.EOF {
				err = nil
			}
			return err
		}
		var record struct {
			Revision uint64
			Record   int
			Payload  string
		}
		if err := json.NewDecoder(strings.NewReader(line)).Decode(&record); err != nil {
			return fmt.Errorf("line %.60q: %w", line, err)
		}
		switch {
		case record.Record == 0:
			if !given {
				each(g)
			}
			g = Group{Revision: record.Revision}
		case g.Revision != record.Revision || len(g.Records) != record.Record:
			return fmt.Errorf("record %d of revision %d is out of order", record.Record, record.Revision)
		}
		g.Records = append(g.Records, record.Payload)
		if given = whole(&g); given {
			each(g)
		}
	}
}

// whole reports whether the records say themselves that they are all.
func whole(g *Group) bool {
	var skip int
	var lines int
	_, err := fmt.Sscanf(g.Records[0], "r%d t%d l%d/%d ", &skip, &skip, &skip, &lines)
	return err == nil && len(g.Records) == lines
}
