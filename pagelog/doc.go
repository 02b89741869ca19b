// Package pagelog is the engine: one file, one writer, an append-only history
// of commits that is either whole or absent.
//
// A commit group is the only unit of change, and it is in one of three states.
// Incomplete: some of its bytes are missing or do not validate; it means
// nothing to anybody. Complete: every byte is in the file and validates;
// readers and recovery act on it. Durable: the sync that covers it returned
// nil; the writer acknowledges it. A commit that Log.Commit has acknowledged
// survives the death of the process and the loss of power.
//
// Errors carry the same split. A rejected commit changed nothing and may be
// tried again. An uncertain one (ErrUncertain) reached the file and may or may
// not be there; the log is poisoned until it is opened again, and opening
// decides by the bytes.
//
// # Writing
//
//	log, err := pagelog.Create("run.log", pagelog.CreateOptions{}, pagelog.Options{})
//	var b pagelog.Batch
//	b.Append([]byte("hello"))
//	commit, err := log.Commit(ctx, &b)
//
// # Reading
//
// A Reader works beside a live writer in another process, without locks. A Log
// has everything a Reader has.
//
//	for group, err := range r.Commits(0) {
//		for record, err := range group.Records() { … }
//	}
//
// Five files to read first: commit.go (how callers share one write and one
// sync), recover.go (what opening decides), walk.go (what makes a group
// valid), judge.go (when a reader says corrupt), slots.go (what is known to be
// on disk).
package pagelog
