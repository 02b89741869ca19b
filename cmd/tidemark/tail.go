package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/pagelog"
)

func newTail(a *app) *cobra.Command {
	var o printFlags
	var follow, durable bool
	cmd := &cobra.Command{
		Use:     "tail LOG",
		Short:   "Print the records and follow the log as it grows",
		GroupID: groupRead,
		Long: `Print the records as cat does, from the oldest unless --after says where to
begin. With --follow it then waits for more, also from a writer in another
process, until it is stopped or --limit is reached. With --durable it prints
only what no loss of power can take away.

Stopped by a signal it exits with 128 plus the signal's number. If the file is
replaced under it, by another one of the same name, it exits with 2; if another
history is copied into it, as when a backup is restored, with 5.`,
		Example: `  tidemark tail run.log
  tidemark tail run.log --follow --durable --json --cursor`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error {
			options := pagelog.ReaderOptions{Durable: durable, AllowAnyFileSystem: a.anyFileSystem}
			return withReader(args[0], options, func(r *pagelog.Reader) error {
				if follow {
					return restored(followFrom(cmd, r, &o), args[0], options)
				}
				return printFrom(cmd, r, &o)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&follow, "follow", false, "wait for more and print it as it comes")
	cmd.Flags().BoolVar(&durable, "durable", false, "print only commits that are known to be on disk")
	return cmd
}

// followFrom prints the records after the position and then what comes.
func followFrom(cmd *cobra.Command, r *pagelog.Reader, o *printFlags) error {
	p, err := startPrinter(cmd, r, o)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- follow(ctx, r, p) }()
	select {
	case err = <-done:
	case s := <-signals:
		signal.Stop(signals) // the next one kills
		stop()
		<-done
		number, _ := s.(syscall.Signal)
		err = &interruptedError{signal: number}
	}
	return p.end(cmd.ErrOrStderr(), err)
}

// restored tells a sound file into which another history was copied under the
// reader from one that mixes two histories.
func restored(err error, path string, o pagelog.ReaderOptions) error {
	if !errors.Is(err, pagelog.ErrDiverged) || errors.Is(err, errPosition) {
		return err
	}
	fresh, openErr := pagelog.OpenReader(path, o)
	if openErr != nil {
		return err
	}
	_, headErr := fresh.Head()
	if errors.Join(headErr, fresh.Close()) != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errRestored, err)
}

func follow(ctx context.Context, r *pagelog.Reader, p *printer) error {
	for {
		if err := printCommits(r, p); err != nil || p.full() {
			return err
		}
		if err := p.out.Flush(); err != nil {
			return err
		}
		if err := r.Wait(ctx, p.at.Revision); err != nil {
			return err
		}
	}
}
