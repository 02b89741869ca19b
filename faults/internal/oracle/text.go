// Package oracle holds what a log contains against what was promised of it.
//
// A promise is known from outside the program that made it: what was offered,
// and what came out of its pipe. Contents are compared, never counts: every
// record says which revision, which attempt and which line it was meant for,
// and the rest of it follows from that.
package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Attempt is one try to make a commit of a revision. A revision is tried more
// than once if a try was rejected or lost.
type Attempt struct {
	Revision uint64
	Try      int
}

func (a Attempt) String() string { return fmt.Sprintf("revision %d try %d", a.Revision, a.Try) }

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// Text is the record of a line of an attempt at a commit of so many lines. It
// has size bytes, or a few more than its head needs.
func Text(a Attempt, line, lines, size int) string {
	head := fmt.Sprintf("r%d t%d l%d/%d n%d ", a.Revision, a.Try, line, lines, size)
	var b strings.Builder
	b.Grow(max(size, len(head)))
	b.WriteString(head)
	r := rand.New(rand.NewPCG(a.Revision<<20|uint64(line), uint64(a.Try)<<32|uint64(size)))
	for b.Len() < size {
		for bits, i := r.Uint64(), 0; i < 10 && b.Len() < size; i++ {
			b.WriteByte(letters[bits&63])
			bits >>= 6
		}
	}
	return b.String()
}

// Texts is a whole commit. Its size is spread over its lines.
func Texts(a Attempt, lines, size int) []string {
	texts := make([]string, lines)
	for i := range texts {
		texts[i] = Text(a, i, lines, size/lines)
	}
	return texts
}

// parse finds out which attempt the records are, and fails unless they are
// exactly that.
func parse(records []string) (Attempt, error) {
	var a Attempt
	if len(records) == 0 {
		return a, fmt.Errorf("no records")
	}
	for i, record := range records {
		var at Attempt
		var line, lines, size int
		if _, err := fmt.Sscanf(record, "r%d t%d l%d/%d n%d ", &at.Revision, &at.Try, &line, &lines, &size); err != nil {
			return a, fmt.Errorf("record %d is %.40q: %w", i, record, err)
		}
		if i == 0 {
			a = at
		}
		if at != a || line != i || lines != len(records) {
			return a, fmt.Errorf("record %d of %d of %v is line %d of %d of %v", i, len(records), a, line, lines, at)
		}
		if record != Text(a, line, lines, size) {
			return a, fmt.Errorf("record %d of %v has other bytes than were offered", i, a)
		}
	}
	return a, nil
}
