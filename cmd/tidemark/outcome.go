package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/authority"
	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/pagelog"
)

// Exit codes. They are part of the contract.
const (
	exitGood     = 0 // done
	exitCorrupt  = 1 // acknowledged bytes or a run are damaged, or an envelope is not genuine; a writer that refuses them, too
	exitUsage    = 2 // the command line, or a file that cannot be read or is no log
	exitLocked   = 3 // another process has the log or the run, or the log belongs to a run
	exitRejected = 4 // a write was rejected, or its outcome is unknown
	exitCursor   = 5 // the position is not of this history
)

// Errors of the command line's own.
var (
	errUsage    = errors.New("usage")
	errInput    = errors.New("input cannot be used")
	errRejected = errors.New("rejected")
	errDamaged  = errors.New("damage to acknowledged bytes")
	errPosition = errors.New("not a position in this history")
	errRestored = errors.New("another copy was restored under the reader")
	errBroken   = errors.New("a promise was broken")
	errBase     = errors.New("not a point that a log can begin after")
	errTaken    = errors.New("the name is taken")
	errNoReader = errors.New("nobody reads the output any more")
	errEnvelope = errors.New("not an envelope")
)

// interruptedError ends a verb that a signal asked to stop.
type interruptedError struct {
	signal syscall.Signal
	left   string // what stands, or was not done; empty: nothing to tell
}

func (e *interruptedError) Error() string {
	if e.left == "" {
		return "stopped by a signal"
	}
	return "stopped by a signal; " + e.left
}

// outcome says what an error means to the caller of the program.
type outcome struct {
	is   error
	code int
	next string // what to do; may name the verb's LOG
}

// outcomes is searched from the top: an error that is two things is the first.
var outcomes = []outcome{
	{errBase, exitCursor, "copy the whole cursor, as 'tidemark stat' or 'tidemark cat --cursor' printed it for the other log"},
	{errRestored, exitCursor, "run the command again: it begins with what the file holds now"},
	{errPosition, exitCursor, "leave --after out to begin with the oldest commit; 'tidemark stat LOG' shows which log this is and how far it goes"},
	{errDamaged, exitCorrupt, "'tidemark cat LOG' prints what is sound before the damage, 'tidemark salvage LOG NEW' saves all that holds; restore a copy, and do not write to this file"},
	{errBroken, exitCorrupt, "this is a bug in Tidemark or a broken disk: keep the directory named above and report both"},
	{pagelog.ErrLocked, exitLocked, "wait until the other writer ends; cat, tail, stat and verify work meanwhile"},
	{errRunDamaged, exitCorrupt, "'tidemark authority resolve RUN --as failed' ends it for good; docs/AUTHORITY.md says what to look at before"},
	{authority.ErrVerification, exitCorrupt, "do not use the envelope: it is altered, of another authority, or used up; 'tidemark authority list' shows where the runs stand"},
	{authority.ErrUncertain, exitRejected, "run 'tidemark authority inspect RUN' to see what is there before anything is tried again"},
	{authority.ErrBusy, exitLocked, "another process has the run or the authority; wait until it ends"},
	{authority.ErrState, exitRejected, "'tidemark authority list' shows where each run and key stands, and which are damaged"},
	{authority.ErrCapacity, exitRejected, "retire keys that are no longer needed"},
	{authority.ErrRelocated, exitUsage, "a copy cannot be used, since the original may live; use the original"},
	{authority.ErrUnavailable, exitUsage, "the directory must be the user's own, with mode 0700, on a local disk, below directories that nobody else can write; 'tidemark authority init' makes one"},
	{authority.ErrInvalid, exitUsage, "a run ID has 1 to 128 bytes of text without controls or blanks around it; a directory is an absolute path without links"},
	{context.DeadlineExceeded, exitLocked, "another process is opening the authority and does not go on; end it"},
	{pagelog.ErrFenced, exitLocked, "only the holder of the run's lease writes this log; cat, tail, stat, verify, copy, fork and compact work without it"},
	{pagelog.ErrUncertain, exitRejected, "do not repeat the write yet: 'tidemark cat LOG --after REVISION' with the last acknowledged revision shows whether it is there"},
	{pagelog.ErrPoisoned, exitRejected, "run the command again: opening the log decides what is there"},
	{pagelog.ErrTooLarge, exitRejected, "split the record or use a smaller --group; a log with higher limits is made with 'tidemark create NEW --max-record SIZE --max-group SIZE'"},
	{pagelog.ErrNoSpace, exitRejected, "free space, or raise the quota or the log's maximum size, and run the command again with what was not committed"},
	{errRejected, exitRejected, "mend the cause and run the command again with what was not committed"},
	{pagelog.ErrIndexDamaged, exitCorrupt, "'tidemark reindex LOG' builds the index anew; the commits are not concerned"},
	{pagelog.ErrNoKey, exitCursor, "check namespace and key, letter by letter; 'tidemark cat LOG --json' prints every record"},
	{pagelog.ErrCorrupt, exitCorrupt, "'tidemark verify LOG' lists all damage and 'tidemark cat LOG' prints what is sound before it, 'tidemark salvage LOG NEW' saves all that holds; restore a copy, and do not write to this file"},
	{pagelog.ErrDiverged, exitCorrupt, "the file mixes two histories, as after restoring a copy over a log in use: restore one whole copy"},
	{pagelog.ErrLostCommits, exitCorrupt, "restore a copy that has the commits"},
	{fork.ErrForkPoint, exitCursor, "'tidemark stat LOG' shows the last durable revision; leave --at out to fork there"},
	{fork.ErrForkTooLarge, exitRejected, "fork an earlier log of the family instead, or copy the log"},
	{pagelog.ErrPinned, exitRejected, "keep a newer state with 'tidemark checkpoint LOG --blob FILE', or drop fewer commits"},
	{pagelog.ErrNoPunch, exitUsage, "'tidemark compact LOG' makes a smaller file instead"},
	{pagelog.ErrCompacted, exitCursor, "begin with the oldest commit that is left"},
	{pagelog.ErrNotFound, exitCursor, "'tidemark stat LOG' shows how far the log goes"},
	{pagelog.ErrReplaced, exitUsage, "the name leads to another file now: run the command again"},
	{pagelog.ErrUnsupported, exitUsage, "update Tidemark; the file was not changed"},
	{pagelog.ErrNotALog, exitUsage, "check the path; 'tidemark create NEW' makes a log where there is no file yet"},
	{pagelog.ErrFileSystem, exitUsage, "move the log to a local disk, or add --any-file-system if you know that its locks and syncs hold"},
	{errInput, exitUsage, "mend the input and append from that line on"},
	{errEnvelope, exitUsage, "check the path; an envelope is what a program got when it suspended or ended a run"},
	{errTaken, exitUsage, "choose another name for NEW: nothing is ever written over"},
	{fs.ErrExist, exitUsage, "choose another name, or add to what is there with 'tidemark append LOG'"},
	{fs.ErrPermission, exitUsage, "ask for permission to the file and its directory, or become its owner; a log is made readable by its owner only"},
	{errUsage, exitUsage, ""},
}

// explain returns the exit code for an error and what to print about it.
func explain(cmd *cobra.Command, err error) (code int, text string) {
	var stopped *interruptedError
	uncertain := errors.Is(err, pagelog.ErrUncertain)
	switch {
	case uncertain:
	case errors.Is(err, errNoReader):
		return exitGood, ""
	case errors.As(err, &stopped):
		return 128 + int(stopped.signal), fmt.Sprintf("%s: %v\n", cmd.CommandPath(), err)
	}
	code, next := classify(cmd, err)
	next = withOperand(cmd, next)
	if next == "" {
		next = fmt.Sprintf("'%s --help' shows how it is used, with an example", cmd.CommandPath())
	}
	return code, fmt.Sprintf("%s: %s\n  next: %s\n", cmd.CommandPath(), oneLine(err), next)
}

// plainPath is a path that a shell takes as it stands.
var plainPath = regexp.MustCompile(`^[\w./+,:@%-]+$`)

// withOperand puts the log at hand into advice, ready to be copied.
func withOperand(cmd *cobra.Command, next string) string {
	operand := cmd.Flags().Arg(0)
	if !takesLog(cmd) || !plainPath.MatchString(operand) || strings.HasPrefix(operand, "-") {
		return next
	}
	return regexp.MustCompile(`\bLOG\b`).ReplaceAllLiteralString(next, operand)
}

func classify(cmd *cobra.Command, err error) (code int, next string) {
	for _, o := range outcomes {
		if errors.Is(err, o.is) {
			return o.code, o.next
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if missesLog(cmd, err) {
			return exitUsage, "check the path; 'tidemark create LOG' or 'tidemark append LOG' makes a log, in a directory that exists"
		}
		return exitUsage, "check the path: the file, or the directory that is to hold it, must be there"
	}
	return exitUsage, "this is what the operating system said; mend it and run the command again"
}

// takesLog reports whether the verb's first operand is a LOG.
func takesLog(cmd *cobra.Command) bool { return strings.Contains(cmd.Use, " LOG") }

// missesLog reports whether what is missing is the verb's LOG, or its directory.
func missesLog(cmd *cobra.Command, err error) bool {
	log := cmd.Flags().Arg(0)
	var missing *fs.PathError
	return takesLog(cmd) && errors.As(err, &missing) &&
		(missing.Path == log || missing.Path == filepath.Dir(log))
}

// oneLine keeps an error, joined ones too, on one line of the terminal.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), errUsage.Error()+": ")
	return strings.ReplaceAll(text, "\n", "; ")
}

// usagef is an error in what the caller typed.
func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errUsage, fmt.Errorf(format, args...))
}

// output is standard output. A reader that has gone is errNoReader.
type output struct{ io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if isNoReader(err) {
		err = errNoReader
	}
	return n, err
}

// remembered keeps the first error of writing.
type remembered struct {
	io.Writer
	err error
}

func (r *remembered) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

// isNoReader reports whether a write failed since the pipe has no reader.
func isNoReader(err error) bool {
	const windowsBrokenPipe, windowsNoData = syscall.Errno(109), syscall.Errno(232)
	if runtime.GOOS == "windows" {
		return errors.Is(err, windowsBrokenPipe) || errors.Is(err, windowsNoData)
	}
	return errors.Is(err, syscall.EPIPE)
}

// isTerminal reports whether a stream is shown to a person.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}
