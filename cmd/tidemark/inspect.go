package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

func newInspect(a *app) *cobra.Command {
	var asJSON, pages bool
	var html string
	limit := count{n: 40, low: 0, top: 1 << 20}
	cmd := &cobra.Command{
		Use:     "inspect LOG",
		Short:   "Show what lies where in the file of a log",
		GroupID: groupCheck,
		Long: `Show the file as a tree, each line with its offset and size in bytes: the header
area with the identity and both slots, pages, commits with their records,
checkpoints, where the durable floor is (what lies before it was acknowledged),
what a crash left, and the space written ahead; then the pages as a map of
characters. It looks at every byte, only reads, and works on damaged logs:
damage is marked with '!!' and makes the exit code 1.

Of a large log the first and the last groups are shown, --limit of them in all,
and all damage between. --pages shows the map alone, one character a page as
long as there are no more than 16,384 pages. --html writes all this as one page
for a browser that needs nothing else, no network above all, and stays under a
megabyte, to FILE, or to standard output for -; nothing else is printed then.

The offsets are for people who look at the file with other tools. The salt of
the file is not shown.`,
		Example: `  tidemark inspect run.log
  tidemark inspect run.log --pages
  tidemark inspect run.log --limit 4 --json
  tidemark inspect run.log --html picture.html`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			asHTML := cmd.Flags().Changed("html")
			switch {
			case asHTML && (asJSON || pages):
				return usagef("--html: it goes with neither --json nor --pages")
			case asHTML && html == "":
				return usagef("--html: it is empty; name a file, or - for standard output")
			}
			bar := newBar(cmd.ErrOrStderr())
			groups := int(limit.n)
			if groups == 0 {
				groups = -1
			}
			cells := 512
			switch {
			case pages:
				cells = 16384
			case asHTML:
				cells, groups = htmlCells, min(groups, htmlGroups)
			}
			p, err := pagelog.Inspect(context.Background(), args[0], pagelog.InspectOptions{
				Groups: groups, Cells: cells, Progress: bar.show, AllowAnyFileSystem: a.anyFileSystem,
			})
			bar.clear()
			if p.FileSize == 0 && err != nil {
				return err
			}
			if asHTML {
				return errors.Join(writeHTML(cmd.OutOrStdout(), html, args[0], &p), err, damageIn(args[0], &p))
			}
			return errors.Join(printPicture(cmd.OutOrStdout(), &p, asJSON, pages), err, damageIn(args[0], &p))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&pages, "pages", false, "print only the map of the pages")
	cmd.Flags().StringVar(&html, "html", "", "write a page for a browser to `FILE`")
	cmd.Flags().Var(&limit, "limit", "show at most this many groups")
	return cmd
}

// damageIn is the error with which inspect ends after it showed everything.
func damageIn(path string, p *pagelog.Picture) error {
	if !p.Check.Corrupt {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", path, errDamaged, firstDamage(&p.Check))
}

func printPicture(w io.Writer, p *pagelog.Picture, asJSON, pages bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(newPicture(p))
	}
	var b strings.Builder
	if !pages {
		t := tree{out: &b, p: p}
		t.draw()
		b.WriteByte('\n')
	}
	drawMap(&b, p)
	_, err := io.WriteString(w, b.String())
	return err
}

// picture is what inspect prints in JSON. The keys are part of the contract.
type picture struct {
	LogID       cursor.LogID         `json:"log_id"`
	Format      int                  `json:"format_version"`
	Created     string               `json:"created"`
	PageSize    int                  `json:"page_size"`
	Align       int                  `json:"align"`
	Base        *string              `json:"base"`
	Ancestors   []string             `json:"ancestors"`
	HeaderArea  int64                `json:"header_area"`
	Identities  []headerPart         `json:"identities"`
	Slots       []slotPart           `json:"slots"`
	Begin       mark                 `json:"begin"`
	Proven      int64                `json:"durable_floor"`
	End         int64                `json:"end"`
	DirtEnd     int64                `json:"dirt_end"`
	FileSize    int64                `json:"file_size"`
	Groups      []groupPart          `json:"groups"`
	First       int                  `json:"groups_before_gap"`
	LeftOut     uint64               `json:"groups_left_out"`
	Checkpoints uint64               `json:"checkpoints"`
	CellPages   int64                `json:"cell_pages"`
	Map         []pagelog.Cell       `json:"map"`
	Check       pagelog.VerifyReport `json:"check"`
}

type headerPart struct {
	Offset  int64  `json:"offset"`
	Size    int64  `json:"size"`
	Problem string `json:"problem,omitempty"`
}

type slotPart struct {
	headerPart
	Unused  bool   `json:"unused"`
	Newest  bool   `json:"newest"`
	Number  uint64 `json:"number"`
	Epoch   uint64 `json:"epoch"`
	Durable mark   `json:"durable"`
	Floor   mark   `json:"floor"`
	Check   mark   `json:"checkpoint"`
	Before  mark   `json:"checkpoint_before"`
}

type groupPart struct {
	From       int64         `json:"from"`
	Offset     int64         `json:"offset"`
	End        int64         `json:"end"`
	Kind       string        `json:"kind"`
	State      string        `json:"state"`
	Gap        bool          `json:"gap"`
	Revision   uint64        `json:"revision"`
	Digest     cursor.Digest `json:"digest"`
	Epoch      uint64        `json:"epoch"`
	Time       string        `json:"time"`
	DurableEnd int64         `json:"durable_end"`
	Count      int           `json:"records_count"`
	Records    []recordPart  `json:"records"`
}

type recordPart struct {
	Offset   int64  `json:"offset"`
	Size     int64  `json:"size"`
	Stored   int    `json:"stored_bytes"`
	Raw      int    `json:"raw_bytes"`
	Kind     uint32 `json:"kind"`
	Codec    string `json:"codec"`
	Required bool   `json:"required"`
}

func newPicture(p *pagelog.Picture) *picture {
	out := &picture{
		LogID: p.Info.LogID, Format: p.Info.FormatVersion, Created: timeText(p.Info.Created), PageSize: p.Info.PageSize, Align: p.Info.Align,
		Ancestors: []string{}, HeaderArea: p.HeaderArea, Begin: mark(p.Begin), Proven: p.Proven, End: p.End, DirtEnd: p.DirtEnd, FileSize: p.FileSize,
		Groups: []groupPart{}, First: p.First, LeftOut: p.LeftOut, Checkpoints: p.Checkpoints, CellPages: p.CellPages, Map: p.Map, Check: p.Check,
	}
	if p.Info.Base != (cursor.Cursor{}) {
		base := p.Info.Base.String()
		out.Base = &base
	}
	for _, c := range p.Info.Ancestors {
		out.Ancestors = append(out.Ancestors, c.String())
	}
	for _, i := range p.Identities {
		out.Identities = append(out.Identities, headerPart(i))
	}
	for _, s := range p.Slots {
		out.Slots = append(out.Slots, slotPart{
			headerPart(s.HeaderPart), s.Unused, s.Newest, s.Number, s.Epoch, mark(s.Durable), mark(s.Floor), mark(s.Check), mark(s.Before),
		})
	}
	for _, g := range p.Groups {
		part := groupPart{
			g.From, g.Offset, g.End, g.Kind, g.State, g.Gap, g.Revision, g.Digest, g.Epoch, timeText(g.Time), g.DurableEnd, g.Count, []recordPart{},
		}
		for _, r := range g.Records {
			part.Records = append(part.Records, recordPart{r.Offset, r.Size, r.Stored, r.Raw, r.Kind, codecName(r.Codec), r.Required})
		}
		out.Groups = append(out.Groups, part)
	}
	return out
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func codecName(c pagelog.Codec) string {
	names := []string{"plain", "s2", "zstd"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("codec %d", c)
}
