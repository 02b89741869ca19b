package observer

import (
	"fmt"

	"github.com/tidemark-log/tidemark/cursor"
)

// board is the newest note of a channel, and how many there were since it was
// put up. It is taken down by the first commit after it.
type board struct {
	data  []byte
	after uint64 // revision after which it was noted
	count uint64
	order uint64 // of the newest among all notes
}

// Note tells whoever looks in time of progress that is not history, on a
// channel. Of one channel only the newest note is kept, and none is delivered
// after a commit that came after it. It never waits. The bytes are copied. The
// error is that of asking the log for its head, ErrTooMany if there are more
// than 256 channels, or ErrClosed.
func (h *Hub) Note(channel string, data []byte) error {
	head, err := h.reader.Head()
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return h.err
	}
	b := h.notes[channel]
	switch {
	case h.first+uint64(len(h.ring)) > head.Revision+1:
		return nil // a commit came meanwhile
	case b == nil && len(h.notes) >= maxChannels:
		return fmt.Errorf("%w: %d channels", ErrTooMany, len(h.notes))
	case b == nil || b.after != head.Revision:
		b = &board{after: head.Revision}
		h.notes[channel] = b
	}
	h.noted++
	b.data, b.count, b.order = append([]byte(nil), data...), b.count+1, h.noted
	h.tell()
	return nil
}

// seen is what an observer saw of a channel's board.
type seen struct {
	after, count uint64
}

// due returns a note that an observer who stands at c has not seen, the oldest
// first.
func (h *Hub) due(c cursor.Cursor, known map[string]seen) (Note, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var channel string
	var next *board
	for name, b := range h.notes {
		if b.after != c.Revision || known[name] == (seen{b.after, b.count}) {
			continue
		}
		if next == nil || b.order < next.order {
			channel, next = name, b
		}
	}
	if next == nil {
		return Note{}, false
	}
	count := next.count
	if k := known[channel]; k.after == next.after {
		count -= k.count
	}
	known[channel] = seen{next.after, next.count}
	return Note{Channel: channel, Data: next.data, Count: count}, true
}
