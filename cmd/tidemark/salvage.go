package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newSalvage(a *app) *cobra.Command {
	var o pagelog.SalvageOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "salvage LOG NEW",
		Short:   "Save what holds of a damaged log into a new one",
		GroupID: groupCheck,
		Long: `Write what holds of a log into a new one, and never touch the old one. The new
log has an identity of its own. The history up to the first damage is in it as
it was, with the same revisions and digests. Commits that hold behind damage
cannot be history again, since what they build on is lost: their records are
saved as opaque ones (kind 0xffff0006), each of which names its old place.
--prefix leaves them out.

It says which old revisions are where, and which are lost. Every byte of the new
log is checked before it gets its name; a crash leaves no new log or a whole
one. The exit code is 0 when the new log was made, whatever was wrong with the
old one.`,
		Example: `  tidemark salvage run.log saved.log
  tidemark salvage run.log prefix.log --prefix --json`,
		Args: logAndNew,
		RunE: func(cmd *cobra.Command, args []string) error {
			bar := newBar(cmd.ErrOrStderr())
			o.Progress, o.AllowAnyFileSystem = bar.show, a.anyFileSystem
			var report pagelog.SalvageReport
			err := interruptible(args[1]+" was not made", func(ctx context.Context) (err error) {
				report, err = pagelog.Salvage(ctx, args[0], args[1], o)
				return err
			})
			bar.clear()
			if err != nil {
				return taken(err)
			}
			if asJSON {
				if report.Map == nil {
					report.Map = []pagelog.Moved{}
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
			}
			return printSalvage(cmd.OutOrStdout(), args[1], &report)
		},
	}
	cmd.Flags().BoolVar(&o.Prefix, "prefix", false, "save only the history up to the first damage")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	return cmd
}

// printSalvage shows a report to a person.
func printSalvage(w io.Writer, path string, r *pagelog.SalvageReport) error {
	var b strings.Builder
	printFindings(&b, &r.Source)
	last := uint64(0)
	for i, m := range r.Map {
		if i > 0 && m.OldFirst > last+1 {
			fmt.Fprintf(&b, "lost     %s\n", revisions(last+1, m.OldFirst-1))
		}
		last = m.OldLast
		if m.Opaque {
			fmt.Fprintf(&b, "saved    %s as opaque records in %s of the new log\n", revisions(m.OldFirst, m.OldLast), revisions(m.NewFirst, m.NewLast))
		} else {
			fmt.Fprintf(&b, "kept     %s\n", revisions(m.OldFirst, m.OldLast))
		}
	}
	if r.Unmap > 0 {
		fmt.Fprintf(&b, "and %d stretches more\n", r.Unmap)
	}
	fmt.Fprintf(&b, "made %s: head %d, %s kept, %s with %s saved from behind damage; log %v\n",
		path, r.Head, countText(r.Kept, "commit"), countText(r.Saved, "commit"), countText(r.Records, "record"), r.LogID)
	_, err := io.WriteString(w, b.String())
	return err
}

func revisions(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("revision %d", first)
	}
	return fmt.Sprintf("revisions %d to %d", first, last)
}
