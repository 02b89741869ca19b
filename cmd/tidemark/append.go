package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/pagelog"
)

type appendFlags struct {
	namespace string
	key       string
	group     count
	sync      choice
	ack       bool
	json      bool
}

func newAppend(a *app) *cobra.Command {
	o := appendFlags{
		group: count{n: 1, low: 1, top: frame.MaxGroupRecords},
		sync:  choice{value: "durable", allowed: []string{"durable", "complete"}},
	}
	cmd := &cobra.Command{
		Use:     "append LOG",
		Short:   "Append the lines of standard input",
		GroupID: groupWrite,
		Long: `Append the lines of standard input as records; the log is made if it is missing.

A record ends at a line feed, which is not part of it; a carriage return is. An
empty line is a record of 0 bytes. The only limit of a line is the log's limit
of a record.

Every N lines are one commit, which is there whole or not at all; the last one
may be short. Each commit is waited for before the next is begun. Durable means
on disk; complete means in the file and visible to readers, and on disk when
append ends.

With --json each line is {"payload": "text"} or {"payload_base64": "bytes"}, and
the lines that 'cat --json' prints are taken, too. A line that is neither ends
append with its number; what was committed before it stays.

--key makes each record findable with 'get', in the namespace that --namespace
names or in the empty one; the last one added under a key is the one that is
found. A JSON line may give keys of its own, as in
{"payload": "paid", "keys": [{"namespace": "orders", "key": "7"}]}; the names of
key and namespace may end in _base64, too.

An interrupt (Ctrl-C) or SIGTERM lets the commit under way finish, closes the
log and exits with 128 plus the signal's number; lines of a commit that was not
full yet are not written. When nobody reads the acknowledgements any more,
append stops the same way, and exits 0.`,
		Example: `  printf 'one\ntwo\nthree\n' | tidemark append run.log --ack
  tidemark append run.log --group 100 < input.txt
  printf '%s\n' '{"payload": "two\nlines"}' | tidemark append run.log --json
  echo shipped | tidemark append run.log --namespace orders --key order-17`,
		Args: oneLog,
		RunE: func(cmd *cobra.Command, args []string) error { return appendLines(cmd, a, args[0], &o) },
	}
	f := cmd.Flags()
	f.Var(&o.group, "group", "lines in one commit")
	f.Var(&o.sync, "sync", "wait until each commit is durable, or only complete")
	f.BoolVar(&o.ack, "ack", false, "print each acknowledged revision on its own line, at once")
	f.BoolVar(&o.json, "json", false, "each line is a JSON object")
	f.StringVar(&o.namespace, "namespace", "", "where --key is looked up: a `NAMESPACE`, empty if not set")
	f.StringVar(&o.key, "key", "", "add each record under this `KEY`")
	completeWords(cmd, "sync", o.sync.allowed)
	return cmd
}

// keys returns the keys that every record gets.
func (o *appendFlags) keys(cmd *cobra.Command) ([]recordKey, error) {
	if !cmd.Flags().Changed("key") {
		if cmd.Flags().Changed("namespace") {
			return nil, usagef("--namespace: it goes with --key, which is not there")
		}
		return nil, nil
	}
	k := recordKey{[]byte(o.namespace), []byte(o.key)}
	if err := k.check(); err != nil {
		return nil, usagef("%w", err)
	}
	return []recordKey{k}, nil
}

func appendLines(cmd *cobra.Command, a *app, path string, o *appendFlags) error {
	keys, err := o.keys(cmd)
	if err != nil {
		return err
	}
	log, err := openOrCreate(path, pagelog.Options{AllowAnyFileSystem: a.anyFileSystem})
	if err != nil {
		return err
	}
	lines, err := newAppender(cmd, log, o)
	if err == nil {
		lines.keys = keys
		err = lines.run()
	}
	closed := log.Close()
	told := errors.Is(err, pagelog.ErrUncertain) || errors.Is(err, pagelog.ErrPoisoned)
	if closed != nil && !told { // a poisoned log says so again
		err = errors.Join(err, fmt.Errorf("close: %w: %w", pagelog.ErrUncertain, closed))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// openOrCreate opens a log for writing and makes it if the name is free. Others
// may do the same at the same time.
func openOrCreate(path string, o pagelog.Options) (*pagelog.Log, error) {
	for {
		log, err := pagelog.Open(path, o)
		if !errors.Is(err, fs.ErrNotExist) {
			return log, err
		}
		log, err = pagelog.Create(path, pagelog.CreateOptions{}, o)
		if !errors.Is(err, fs.ErrExist) {
			return log, err
		}
	}
}

// appender turns lines into commits.
type appender struct {
	log   *pagelog.Log
	in    *lines
	parse func(line []byte) (parsedLine, error) // nil: the line is the payload
	keys  []recordKey                           // that every record gets
	acks  io.Writer                             // nil: nobody asked
	group int
	limit int64 // bytes of one commit
	batch pagelog.Batch
	lines int   // in the batch
	first int64 // number of the line with which the batch begins
	head  uint64

	// busy is held while a commit is under way. Whoever keeps it lets no
	// further one begin.
	busy sync.Mutex
}

func newAppender(cmd *cobra.Command, log *pagelog.Log, o *appendFlags) (*appender, error) {
	info, err := log.Info()
	if err != nil {
		return nil, err
	}
	a := &appender{log: log, group: int(o.group.n), head: log.Head().Revision}
	a.batch.CompleteOnly = o.sync.value == "complete"
	limit := info.MaxRecord
	a.limit = info.MaxGroup + frame.GroupHeaderSize
	if o.json {
		a.parse = parseLine
		limit = jsonLineLimit(limit)
	}
	if o.ack {
		a.acks = cmd.OutOrStdout()
	}
	a.in = newLines(cmd.InOrStdin(), limit)
	return a, nil
}

// run appends until the input ends or a signal asks to stop.
func (a *appender) run() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	done := make(chan error, 1)
	go func() { done <- a.loop() }()
	select {
	case err := <-done:
		return err
	case s := <-signals:
		signal.Stop(signals) // the next one kills
		a.busy.Lock()
		return a.stopped(s)
	}
}

// stopped says what a signal left undone. busy is held.
func (a *appender) stopped(s os.Signal) error {
	e := &interruptedError{left: fmt.Sprintf("the log is closed and sound, the last acknowledged revision is %d", a.head)}
	if number, ok := s.(syscall.Signal); ok {
		e.signal = number
	}
	return e
}

func (a *appender) loop() error {
	for {
		line, err := a.in.next()
		if errors.Is(err, io.EOF) {
			return a.commit()
		}
		if err != nil {
			return fmt.Errorf("line %d: %w; %s", a.in.number, err, a.kept(a.in.number))
		}
		if err := a.add(line); err != nil {
			return err
		}
	}
}

// add puts a line into the batch and commits it when it is full.
func (a *appender) add(line []byte) error {
	r := parsedLine{payload: line}
	if a.parse != nil {
		var err error
		if r, err = a.parse(line); err != nil {
			return fmt.Errorf("line %d: %w: %w; %s", a.in.number, errInput, err, a.kept(a.in.number))
		}
	}
	if a.lines == 0 {
		a.first = a.in.number
	}
	a.lines++
	a.batch.Append(r.payload)
	for _, keys := range [][]recordKey{a.keys, r.keys} {
		for _, k := range keys {
			a.batch.Key(k.namespace, k.key)
		}
	}
	if a.lines < a.group && a.batch.Size() <= a.limit {
		return nil
	}
	return a.commit()
}

// commit writes the batch, waits for it and acknowledges it.
func (a *appender) commit() error {
	if a.lines == 0 {
		return nil
	}
	a.busy.Lock()
	defer a.busy.Unlock()
	c, err := a.log.Commit(context.Background(), &a.batch)
	if err != nil {
		return a.failed(err)
	}
	a.head = c.Revision
	a.batch.Reset()
	a.lines = 0
	if a.acks == nil {
		return nil
	}
	_, err = a.acks.Write(append(strconv.AppendUint(nil, c.Revision, 10), '\n'))
	return err
}

// failed says which lines a failed commit was made of, and what stands.
func (a *appender) failed(err error) error {
	where := fmt.Sprintf("line %d", a.first)
	if a.lines > 1 {
		where = fmt.Sprintf("lines %d to %d", a.first, a.in.number)
	}
	if errors.Is(err, pagelog.ErrUncertain) || errors.Is(err, pagelog.ErrPoisoned) {
		return fmt.Errorf("%s: %w; revision %d is the last one acknowledged", where, err, a.head)
	}
	return fmt.Errorf("%s: %w: %w; %s", where, errRejected, err, a.kept(a.first))
}

// kept says what was committed before the lines that were not.
func (a *appender) kept(line int64) string {
	if a.lines > 0 {
		line = a.first
	}
	return fmt.Sprintf("nothing from line %d on was written, the log's head is revision %d", line, a.head)
}
