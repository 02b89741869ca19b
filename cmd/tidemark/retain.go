package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newRetain(a *app) *cobra.Command {
	var asJSON bool
	from := count{low: 1, top: 1<<63 - 1}
	cmd := &cobra.Command{
		Use:     "retain LOG --from REVISION",
		Short:   "Drop the oldest commits and free their space",
		GroupID: groupWrite,
		Long: `Drop the commits before a revision, which becomes the oldest one left, and give
the space of their pages back to the file system. Offsets and revisions stay,
and so does the size of the file, with a hole in it. Keys of dropped commits are
still known as dropped. A log that has a state of its host keeps the commits
behind it.

It is there when the verb ends: a crash before that leaves all commits, or the
rest is done when the log is next opened for writing. A file system that cannot
free the inside of a file is refused: see 'compact'.`,
		Example: `  tidemark retain run.log --from 2
  tidemark retain run.log --from 2 --json`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !from.set {
				return usagef("--from is missing: name the revision that is to be the oldest")
			}
			done, err := retain(args[0], uint64(from.n), pagelog.Options{AllowAnyFileSystem: a.anyFileSystem})
			if err != nil {
				return err
			}
			return done.print(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().Var(&from, "from", "the revision that is to be the oldest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// retained is what retain prints. The keys are part of the contract.
type retained struct {
	Oldest  uint64 `json:"oldest"`  // first revision left
	Dropped uint64 `json:"dropped"` // commits dropped now
	Head    uint64 `json:"head"`
}

func retain(path string, from uint64, o pagelog.Options) (done retained, err error) {
	log, err := pagelog.Open(path, o)
	if err != nil {
		return done, err
	}
	before := log.Oldest()
	err = log.Retain(context.Background(), from)
	done = retained{log.Oldest(), log.Oldest() - before, log.Head().Revision}
	if err = errors.Join(err, log.Close()); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return done, err
}

func (r *retained) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, "dropped %s, oldest %d, head %d\n", countText(r.Dropped, "commit"), r.Oldest, r.Head)
	return err
}
