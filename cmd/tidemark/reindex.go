package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newReindex(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "reindex LOG",
		Short:   "Build the keyed index anew",
		GroupID: groupWrite,
		Long: `Build the keyed index anew from the commits: after damage to it, which 'get'
reports and 'verify' finds. No commit is changed. It reads the whole log, needs
to be its only writer, and may be stopped and run again at any time: until it is
done the old index stays.`,
		Example: `  tidemark reindex run.log`,
		Args:    oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			return reindex(cmd, args[0], pagelog.Options{AllowAnyFileSystem: a.anyFileSystem})
		},
	}
	return cmd
}

func reindex(cmd *cobra.Command, path string, o pagelog.Options) error {
	log, err := pagelog.Open(path, o)
	if err != nil {
		return err
	}
	err = log.Reindex(context.Background())
	keys := log.IndexStats().Keys
	if err := errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "indexed %s: %s\n", path, countText(keys, "key"))
	return err
}
