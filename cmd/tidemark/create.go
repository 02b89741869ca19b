package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

func newCreate(a *app) *cobra.Command {
	var page, align, maxRecord, maxGroup, maxSize size
	var base string
	cmd := &cobra.Command{
		Use:     "create LOG",
		Short:   "Make a new, empty log",
		GroupID: groupWrite,
		Long: `Make a new, empty log and print its identity. A crash leaves no file or a whole
one. A name that is taken is left alone, whatever it is.

The flags are for all the life of the log. Sizes are bytes, or have K, M or G
behind them.

--base takes a cursor of another log, as stat and cat print it. The new log goes
on behind that point: its first commit has the next revision, its history is
chained to the one before, and whoever asks for something older is told that it
is gone, with the oldest revision there is. Nothing is copied.`,
		Example: `  tidemark create run.log
  tidemark create small.log --page-size 4K --max-size 1G`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			after, err := parseBase(base, cmd.Flags().Changed("base"))
			if err != nil {
				return err
			}
			log, err := pagelog.Create(args[0], pagelog.CreateOptions{
				PageSize: int(min(page, math.MaxInt32)), Align: int(min(align, math.MaxInt32)),
				MaxRecord: int64(maxRecord), MaxGroup: int64(maxGroup), MaxSize: int64(maxSize), Base: after,
			}, pagelog.Options{AllowAnyFileSystem: a.anyFileSystem})
			if err != nil {
				return inFlags(args[0], err)
			}
			id := log.LogID()
			if err := log.Close(); err != nil {
				return fmt.Errorf("%s: close: %w", args[0], err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "created %s, log %v\n", args[0], id)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&base, "base", "", "begin behind this point of another log: a `CURSOR`")
	f.Var(&page, "page-size", "page size, a power of two from 4K to 1M; 0 means 16K")
	f.Var(&align, "align", "begin writes at multiples of 8, 512 or 4096 bytes; 0 means 8")
	f.Var(&maxRecord, "max-record", "bytes of one record, at most 1G; 0 means 16M")
	f.Var(&maxGroup, "max-group", "bytes of one commit, at most 2G; 0 means 64M")
	f.Var(&maxSize, "max-size", "bytes of the file, over which commits are rejected; 0 means no limit")
	return cmd
}

// inFlags says in the words of the command line why a log was not made.
func inFlags(path string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	for option, flag := range map[string]string{
		"PageSize": "page-size", "Align": "align", "MaxRecord": "max-record", "MaxGroup": "max-group", "MaxSize": "max-size",
	} {
		if _, is, ok := strings.Cut(err.Error(), "option "+option+" is "); ok {
			return usagef("--%s: it is %s", flag, is)
		}
	}
	return err
}

// parseBase reads the cursor that a log begins after.
func parseBase(text string, given bool) (cursor.Cursor, error) {
	if !given {
		return cursor.Cursor{}, nil
	}
	c, err := cursor.Parse(text)
	switch {
	case err != nil:
		return c, fmt.Errorf("%w: --base: %w", errBase, err)
	case c.View != 0:
		return c, fmt.Errorf("%w: --base: %w; name one of the whole log", errBase, cursor.ErrView)
	case c.Log == cursor.LogID{}:
		return c, fmt.Errorf("%w: --base: %w", errBase, cursor.ErrForeign)
	}
	return c, nil
}
