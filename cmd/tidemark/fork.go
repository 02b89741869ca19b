package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/fork"
)

func newFork(a *app) *cobra.Command {
	var asJSON, planOnly bool
	at := count{low: 0, top: 1<<63 - 1}
	cmd := &cobra.Command{
		Use:     "fork LOG NEW",
		Short:   "Make an independent log that begins with another one's history",
		GroupID: groupWrite,
		Long: `Make a log of its own that has the history of LOG up to a commit, with the same
revisions and digests, and goes on by itself: it has a new ID, and its first
commit, the fork record, says where it comes from. LOG may be written meanwhile;
it is only read, and may be deleted afterwards. 'stat' shows where a log was
forked from.

The commit must be proven durable; without --at it is the last one that is. On
file systems that can share blocks the fork is there at once, however large. It
gets its name when it is whole: a crash leaves no fork or a whole one. A name
that is taken is left alone. --plan says what would be made, and makes nothing.`,
		Example: `  tidemark fork run.log try.log --at 41
  tidemark fork run.log try.log --plan --json`,
		Args: logAndNew,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at.set && at.n == 0 {
				return usagef("--at: revision 0 is before the first commit; leave --at out to fork at the last one")
			}
			o := fork.Options{At: uint64(at.n), AllowAnyFileSystem: a.anyFileSystem}
			if planOnly {
				p, err := fork.Plan(context.Background(), args[0], o)
				if err != nil {
					return err
				}
				return printPlan(cmd.OutOrStdout(), &p, asJSON)
			}
			bar := newBar(cmd.ErrOrStderr())
			o.Progress = bar.show
			var made fork.Made
			err := interruptible(args[1]+" was not made", func(ctx context.Context) (err error) {
				made, err = fork.Create(ctx, args[0], args[1], o)
				return err
			})
			bar.clear()
			if err != nil {
				return taken(err)
			}
			return printFork(cmd.OutOrStdout(), args[1], &made, asJSON)
		},
	}
	cmd.Flags().Var(&at, "at", "the revision of the last commit to take over; the last durable one, if not set")
	cmd.Flags().Lookup("at").DefValue = "0" // not set: the last durable one
	cmd.Flags().BoolVar(&planOnly, "plan", false, "say what would be made, and make nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func printPlan(w io.Writer, p *fork.Planned, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(p)
	}
	_, err := fmt.Fprintf(w, "fork of log %v after revision %d (digest %v): %s from revision %d on, %s, %s\n",
		p.Source, p.Revision, p.Digest, countText(p.Commits, "commit"), p.Oldest, bytesText(p.Bytes), countText(uint64(p.Ancestors), "ancestor"))
	return err
}

func printFork(w io.Writer, path string, m *fork.Made, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(m)
	}
	_, err := fmt.Fprintf(w, "forked to %s: after revision %d of log %v, head %d; %s shared, %s copied; log %v\n",
		path, m.Revision, m.Source, m.Head, bytesText(m.Shared), bytesText(m.Copied), m.LogID)
	return err
}
