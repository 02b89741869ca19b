package oracle

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Group is a commit as a reader found it.
type Group struct {
	Revision uint64
	Records  []string
}

// Loss is what may have happened to the log.
type Loss int

// The losses. The death of a process takes nothing that was complete; the loss
// of power takes what was not durable.
const (
	Death Loss = iota
	PowerCut
)

// state is what is known of an attempt. The order is by strength.
type state int

const (
	offered  state = iota // may be there
	rejected              // must not be there
	complete              // must be there after a death
	durable               // must be there
)

// Ledger is everything that was promised of one log.
type Ledger struct {
	states map[Attempt]state
	acked  map[uint64]int // the try that was acknowledged
	base   uint64         // everything up to here was checked and is durable
	opened uint64         // what the last opening found, and made durable
	exists bool           // the log itself is durable, with its name
}

// New returns the ledger of a log that does not exist yet.
func New() *Ledger {
	return &Ledger{states: map[Attempt]state{}, acked: map[uint64]int{}}
}

// Clone returns a ledger that goes its own way.
func (l *Ledger) Clone() *Ledger {
	return &Ledger{states: maps.Clone(l.states), acked: maps.Clone(l.acked), base: l.base, opened: l.opened, exists: l.exists}
}

// Exist notes that the log was said to be there.
func (l *Ledger) Exist() { l.exists = true }

// MayBeMissing reports whether nothing was said yet that needs a log.
func (l *Ledger) MayBeMissing() bool { return !l.exists && l.Complete() == 0 }

// Open notes that a writer opened the log and found it to end at head: it made
// that durable, and dropped what it did not find.
func (l *Ledger) Open(head uint64) error {
	if must := l.Complete(); head < must {
		return fmt.Errorf("lost: opening found revision %d, %d was acknowledged", head, must)
	}
	l.Exist()
	l.Synced(head)
	l.opened = head
	for a := range l.states {
		if a.Revision > head {
			l.states[a] = rejected
		}
	}
	return nil
}

// Offer notes that an attempt was handed to the log.
func (l *Ledger) Offer(a Attempt) {
	if _, known := l.states[a]; !known {
		l.states[a] = offered
	}
}

// MayFollow adds what a later ledger of the same log knows to have been offered
// since: at a power cut between the two it may have been on its way.
func (l *Ledger) MayFollow(later *Ledger) {
	for a, s := range later.states {
		if _, known := l.states[a]; !known && s != rejected {
			l.states[a] = offered
		}
	}
}

// Reject notes that the log said the attempt changed nothing.
func (l *Ledger) Reject(a Attempt) { l.states[a] = rejected }

// Ack notes an acknowledgement.
func (l *Ledger) Ack(a Attempt, isDurable bool) {
	l.states[a] = complete
	if isDurable {
		l.states[a] = durable
		l.Synced(a.Revision)
	}
	l.acked[a.Revision] = a.Try
}

// Synced notes that everything acknowledged up to a revision is durable. What
// is durable is durable with all that came before it.
func (l *Ledger) Synced(revision uint64) {
	for r := revision; r > l.base; r-- {
		a := Attempt{r, l.acked[r]}
		if l.states[a] == complete {
			l.states[a] = durable
		}
	}
}

// Durable is the last revision that no loss may take.
func (l *Ledger) Durable() uint64 { return l.last(durable) }

// Complete is the last revision that a death may not take.
func (l *Ledger) Complete() uint64 { return l.last(complete) }

func (l *Ledger) last(least state) uint64 {
	last := max(l.base, l.opened)
	for r, try := range l.acked {
		if r > last && l.states[Attempt{r, try}] >= least {
			last = r
		}
	}
	return last
}

// Next is the attempt to offer for a revision: a try that was not there yet.
func (l *Ledger) Next(revision uint64) Attempt {
	a := Attempt{Revision: revision}
	for {
		if _, known := l.states[a]; !known {
			return a
		}
		a.Try++
	}
}

// Check fails unless groups, the whole contents of the log from the first
// revision on, are what was promised after a loss.
func (l *Ledger) Check(groups []Group, loss Loss) error {
	return l.checkFrom(groups, 1, loss)
}

// CheckNew is Check for the contents behind what was settled last.
func (l *Ledger) CheckNew(groups []Group, loss Loss) error {
	return l.checkFrom(groups, l.base+1, loss)
}

// Base is the last revision that was settled.
func (l *Ledger) Base() uint64 { return l.base }

func (l *Ledger) checkFrom(groups []Group, first uint64, loss Loss) error {
	must := l.Complete()
	if loss == PowerCut {
		must = l.Durable()
	}
	if n := first + uint64(len(groups)) - 1; n < must {
		return fmt.Errorf("lost: the log ends at revision %d, %d was acknowledged", n, must)
	}
	for i := range groups {
		if err := l.checkGroup(&groups[i], first+uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

// CheckPrefix fails unless groups are the beginning of what was promised.
func (l *Ledger) CheckPrefix(groups []Group) error {
	for i := range groups {
		if err := l.checkGroup(&groups[i], uint64(i)+1); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) checkGroup(g *Group, revision uint64) error {
	if g.Revision != revision {
		return fmt.Errorf("revision %d stands where revision %d should", g.Revision, revision)
	}
	a, err := parse(g.Records)
	if err != nil {
		return fmt.Errorf("revision %d: %w", revision, err)
	}
	state, known := l.states[a]
	try, acked := l.acked[revision]
	switch {
	case a.Revision != revision:
		return fmt.Errorf("revision %d holds %v", revision, a)
	case !known:
		return fmt.Errorf("revision %d holds %v, which nobody offered, or which a recovery had dropped", revision, a)
	case state == rejected:
		return fmt.Errorf("revision %d holds %v, which was rejected", revision, a)
	case acked && a.Try != try:
		return fmt.Errorf("revision %d holds %v, try %d was acknowledged", revision, a, try)
	}
	return nil
}

// Settle notes that a writer was opened and found groups, the whole contents of
// the log: from now on they are durable, and what is not among them is gone.
func (l *Ledger) Settle(groups []Group) error {
	for _, g := range groups {
		if g.Revision <= l.base {
			continue
		}
		a, err := parse(g.Records)
		if err != nil {
			return err
		}
		l.states[a], l.acked[g.Revision] = durable, a.Try
		l.base = g.Revision
	}
	for a, s := range l.states {
		if s == durable && a.Revision <= l.base {
			continue
		}
		l.states[a] = rejected
	}
	for r := range l.acked {
		if r > l.base {
			delete(l.acked, r)
		}
	}
	return nil
}

// Hear takes in what a writer said, line by line; a last line without its end
// is no word.
//
//	open R               there is a log
//	offer R T            the attempt T at revision R begins
//	ack R T durable      it is there and stays
//	ack R T complete     it is there
//	reject R T           it changed nothing
//	sync R               everything up to R is durable
//
// Other lines are for people.
func (l *Ledger) Hear(said string) error {
	lines := strings.Split(said, "\n")
	for _, line := range lines[:len(lines)-1] {
		if err := l.HearLine(line); err != nil {
			return err
		}
	}
	return nil
}

// HearLine takes in one line.
func (l *Ledger) HearLine(line string) error {
	words := strings.Fields(line)
	if len(words) < 2 {
		return nil
	}
	var a Attempt
	var err error
	if a.Revision, err = strconv.ParseUint(words[1], 10, 64); err != nil {
		return nil //nolint:nilerr // a line for people
	}
	if len(words) > 2 {
		if a.Try, err = strconv.Atoi(words[2]); err != nil {
			return fmt.Errorf("line %q: %w", line, err)
		}
	}
	switch words[0] {
	case "open":
		return l.Open(a.Revision)
	case "offer":
		l.Offer(a)
	case "reject":
		l.Reject(a)
	case "sync":
		l.Synced(a.Revision)
	case "ack":
		if _, known := l.states[a]; !known {
			return fmt.Errorf("acknowledged %v, which nobody offered", a)
		}
		l.Ack(a, len(words) > 3 && words[3] == "durable")
	}
	return nil
}
