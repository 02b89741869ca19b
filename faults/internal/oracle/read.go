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
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return groups, nil
		}
		if err != nil {
			return groups, err
		}
		var record struct {
			Revision uint64
			Record   int
			Payload  string
		}
		if err := json.NewDecoder(strings.NewReader(line)).Decode(&record); err != nil {
			return groups, fmt.Errorf("line %.60q: %w", line, err)
		}
		if record.Record == 0 {
			groups = append(groups, Group{Revision: record.Revision})
		}
		last := len(groups) - 1
		if last < 0 || groups[last].Revision != record.Revision || len(groups[last].Records) != record.Record {
			return groups, fmt.Errorf("record %d of revision %d is out of order", record.Record, record.Revision)
		}
		groups[last].Records = append(groups[last].Records, record.Payload)
	}
}
