package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

func newStat(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "stat LOG",
		Short:   "Say what a log is and how far it goes",
		GroupID: groupRead,
		Long: `Say what a log is, how far it goes and what of that is on disk. It reads little,
also of a large log, and works beside a live writer. Damage that it meets is
shown and makes the exit code 1; 'verify' looks at every byte.

head is the last complete revision, durable the last one acknowledged,
durable_end the byte offset up to which bytes were acknowledged. In a damaged
log head is the end of the sound prefix, and durable_end lies beyond it.`,
		Example: `  tidemark stat run.log
  tidemark stat run.log --json`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withReader(args[0], pagelog.ReaderOptions{AllowAnyFileSystem: a.anyFileSystem}, func(r *pagelog.Reader) error {
				return stat(cmd.OutOrStdout(), r, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func stat(w io.Writer, r *pagelog.Reader, asJSON bool) error {
	info, err := r.Info()
	if err != nil {
		return err
	}
	s := newStatus(r, &info)
	if asJSON {
		err = json.NewEncoder(w).Encode(s)
	} else {
		err = s.print(w)
	}
	return errors.Join(err, damageOf(&info))
}

// damageOf is the error with which stat ends after it said everything.
func damageOf(info *pagelog.Info) error {
	if info.Damage == nil && len(info.BadSlots) == 2 {
		return fmt.Errorf("%w: both slots are damaged; %s", pagelog.ErrCorrupt, strings.Join(info.BadSlots, "; "))
	}
	return info.Damage
}

// status is what stat prints. The keys are part of the contract.
type status struct {
	LogID         cursor.LogID  `json:"log_id"`
	FormatVersion int           `json:"format_version"`
	Head          uint64        `json:"head"`
	Durable       uint64        `json:"durable"`
	Oldest        uint64        `json:"oldest"`
	Cursor        string        `json:"cursor"` // of the head
	Digest        cursor.Digest `json:"digest"` // of the head
	HeadEnd       int64         `json:"head_end"`
	DurableEnd    int64         `json:"durable_end"`
	FileSize      int64         `json:"file_size"`
	PageSize      int           `json:"page_size"`
	Align         int           `json:"align"`
	MaxRecord     int64         `json:"max_record"`
	MaxGroup      int64         `json:"max_group"`
	MaxRecords    int           `json:"max_records"`
	MaxSize       int64         `json:"max_size"`
	Application   uint64        `json:"application"`
	Created       string        `json:"created"`
	Epoch         uint64        `json:"epoch"`
	Generation    uint64        `json:"generation"`
	Superseded    uint64        `json:"superseded_by"`
	Base          *string       `json:"base"`
	Ancestors     []string      `json:"ancestors"`
	Floor         mark          `json:"floor"`
	Checkpoints   []mark        `json:"checkpoints"`
	BadIdentities []string      `json:"bad_identity_copies"`
	BadSlots      []string      `json:"bad_slots"`
	Damage        *damage       `json:"damage"`
}

// mark is a place in the file.
type mark struct {
	Offset   int64         `json:"offset"`
	Revision uint64        `json:"revision"`
	Digest   cursor.Digest `json:"digest"`
}

// damage is where acknowledged bytes cannot be read.
type damage struct {
	Offset   int64  `json:"offset"`
	Page     int64  `json:"page"`
	Revision uint64 `json:"revision"`
	What     string `json:"what"`
}

func newStatus(r *pagelog.Reader, info *pagelog.Info) *status {
	s := &status{
		LogID: info.LogID, FormatVersion: info.FormatVersion,
		Head: info.Head.Revision, Durable: info.Durable.Revision, Oldest: info.Oldest,
		Cursor: r.Cursor(info.Head).String(), Digest: info.Head.Digest,
		HeadEnd: info.HeadEnd, DurableEnd: info.DurableEnd, FileSize: info.FileSize,
		PageSize: info.PageSize, Align: info.Align,
		MaxRecord: info.MaxRecord, MaxGroup: info.MaxGroup, MaxRecords: info.MaxRecords, MaxSize: info.MaxSize,
		Application: info.Application, Created: info.Created.UTC().Format(time.RFC3339Nano),
		Epoch: info.Epoch, Generation: info.Generation, Superseded: info.Superseded,
		Ancestors: []string{}, Floor: mark(info.Floor), Checkpoints: []mark{},
		BadIdentities: append([]string{}, info.BadIdentities...), BadSlots: append([]string{}, info.BadSlots...),
	}
	if info.Base != (cursor.Cursor{}) {
		base := info.Base.String()
		s.Base = &base
	}
	for _, c := range info.Ancestors {
		s.Ancestors = append(s.Ancestors, c.String())
	}
	for _, m := range info.Checkpoints {
		s.Checkpoints = append(s.Checkpoints, mark(m))
	}
	var found *pagelog.CorruptError
	if errors.As(info.Damage, &found) {
		s.Damage = &damage{found.Offset, found.Page, found.Revision, fmt.Sprintf("%s: %v", found.What, found.Err)}
	}
	return s
}

// print shows the status to a person; what is as usual is left out.
func (s *status) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(key, format string, args ...any) { fmt.Fprintf(t, key+"\t"+format+"\n", args...) }
	row("log_id", "%v", s.LogID)
	row("format_version", "%d", s.FormatVersion)
	row("created", "%s", s.Created)
	row("head", "%d\t(ends at byte %d, digest %v)", s.Head, s.HeadEnd, s.Digest)
	row("durable", "%d", s.Durable)
	row("durable_end", "%d", s.DurableEnd)
	row("oldest", "%d", s.Oldest)
	row("cursor", "%s", s.Cursor)
	row("epoch", "%d", s.Epoch)
	row("file_size", "%d", s.FileSize)
	row("page_size", "%d", s.PageSize)
	row("limits", "record %d bytes, commit %d bytes and %d records, file %s", s.MaxRecord, s.MaxGroup, s.MaxRecords, orNone(s.MaxSize))
	row("checkpoints", "%d", len(s.Checkpoints))
	for _, c := range s.Checkpoints {
		row("", "at byte %d, revision %d", c.Offset, c.Revision)
	}
	if s.Base != nil {
		row("base", "%s", *s.Base)
	}
	for _, c := range s.Ancestors {
		row("forked from", "%s", c)
	}
	for _, what := range append(s.BadIdentities, s.BadSlots...) {
		row("damaged", "%s", what)
	}
	if d := s.Damage; d != nil {
		row("damaged", "at byte %d (page %d), from revision %d on: %s", d.Offset, d.Page, d.Revision, d.What)
	}
	return t.Flush()
}

func orNone(n int64) string {
	if n == 0 {
		return "without limit"
	}
	return fmt.Sprintf("%d bytes", n)
}
