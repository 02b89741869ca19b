package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newCompact(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "compact LOG",
		Short:   "Write a log again, into a smaller file of the same name",
		GroupID: groupWrite,
		Long: `Write the commits of a log into a new file that takes the name: without what
retention dropped, and without checkpoints and pieces of the index that nothing
needs any more. The log has the same ID, revisions and digests; offsets change.

Nobody may write the log meanwhile. Readers go over to the new file by
themselves and lose nothing. A crash leaves the old file or the new one, whole.
There must be room for both.`,
		Example: `  tidemark compact run.log
  tidemark compact run.log --json`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			bar := newBar(cmd.ErrOrStderr())
			var report pagelog.CompactReport
			err := interruptible("the smaller file was not made", func(ctx context.Context) (err error) {
				report, err = pagelog.Compact(ctx, args[0], pagelog.CompactOptions{Progress: bar.show, AllowAnyFileSystem: a.anyFileSystem})
				return err
			})
			bar.clear()
			if err != nil {
				return err
			}
			return printCompacted(cmd.OutOrStdout(), &report, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func printCompacted(w io.Writer, r *pagelog.CompactReport, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, "compacted from %s to %s: revisions %d to %d, file generation %d; log %v\n",
		bytesText(r.Before), bytesText(r.After), r.Oldest, r.Head, r.Generation, r.LogID)
	return err
}
