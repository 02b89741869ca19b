package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

// printFlags is how records are printed.
type printFlags struct {
	after  string
	limit  count
	json   bool
	cursor bool
}

func (o *printFlags) register(cmd *cobra.Command) {
	o.limit = count{low: 0, top: 1 << 62}
	f := cmd.Flags()
	f.StringVar(&o.after, "after", "", "begin after this `REVISION|CURSOR`")
	f.Var(&o.limit, "limit", "print at most this many records")
	f.Lookup("limit").DefValue = "0" // not set: no limit
	f.BoolVar(&o.json, "json", false, "print JSON lines with revision, record, payload or payload_base64, and keys")
	f.BoolVar(&o.cursor, "cursor", false, "print where to go on: with --json in the last line of each commit, else at the end on standard error")
}

// recordLine is one record in JSON. A payload that is text is in Payload,
// anything else in Bytes.
type recordLine struct {
	Revision uint64    `json:"revision"`
	Record   int       `json:"record"`
	Payload  *string   `json:"payload,omitempty"`
	Bytes    *string   `json:"payload_base64,omitempty"`
	Keys     []keyLine `json:"keys,omitempty"`
	Cursor   string    `json:"cursor,omitempty"`
}

// keyLine is a key of a record in JSON.
type keyLine struct {
	Namespace      *string `json:"namespace,omitempty"`
	NamespaceBytes *string `json:"namespace_base64,omitempty"`
	Key            *string `json:"key,omitempty"`
	KeyBytes       *string `json:"key_base64,omitempty"`
}

// textOrBase64 returns bytes as text if they are, else in base64.
func textOrBase64(b []byte) (text, encoded *string) {
	s := string(b)
	if utf8.ValidString(s) {
		return &s, nil
	}
	s = base64.StdEncoding.EncodeToString(b)
	return nil, &s
}

// keysOf returns the keys of a commit by the records they lead to, and the
// index of the last record that is none.
func keysOf(g *pagelog.Group) (keys map[uint32][]keyLine, last int) {
	index := 0
	for record := range g.Records() {
		if record.Kind != checkpoint.KindKey {
			last = index
		} else if k, err := checkpoint.DecodeKey(record.Data); err == nil {
			if keys == nil {
				keys = map[uint32][]keyLine{}
			}
			var line keyLine
			line.Namespace, line.NamespaceBytes = textOrBase64(k.Namespace)
			line.Key, line.KeyBytes = textOrBase64(k.Key)
			keys[k.Record] = append(keys[k.Record], line)
		}
		index++
	}
	return keys, last
}

// printer prints records and remembers how far it came.
type printer struct {
	out     *bufio.Writer
	json    *json.Encoder // nil: one payload a line
	cursors bool
	left    int64 // records still to print; negative: no limit
	at      cursor.Cursor
}

func newPrinter(w io.Writer, o *printFlags, at cursor.Cursor) *printer {
	p := &printer{out: bufio.NewWriterSize(w, 64<<10), cursors: o.cursor, left: -1, at: at}
	if o.limit.set {
		p.left = o.limit.n
	}
	if o.json {
		p.json = json.NewEncoder(p.out)
		p.json.SetEscapeHTML(false)
	}
	return p
}

// full reports whether the limit is reached.
func (p *printer) full() bool { return p.left == 0 }

// commit prints the records of a commit, up to the limit; keys are told with the
// record they lead to. The cursor moves only behind a commit that was printed
// whole.
func (p *printer) commit(r *pagelog.Reader, g *pagelog.Group) error {
	index := 0
	keys, last := keysOf(g)
	for record, err := range g.Records() {
		if err != nil {
			return fmt.Errorf("revision %d, record %d: %w", g.Revision, index, err)
		}
		if record.Kind == checkpoint.KindKey {
			index++
			continue
		}
		if p.full() {
			return nil
		}
		if p.left > 0 {
			p.left--
		}
		index++
		at := ""
		if p.cursors && index-1 == last {
			at = r.Cursor(g.Commit).String()
		}
		if err := p.record(recordLine{Revision: g.Revision, Record: index - 1, Keys: keys[uint32(index-1)], Cursor: at}, record.Data); err != nil {
			return err
		}
	}
	p.at = r.Cursor(g.Commit)
	return nil
}

func (p *printer) record(line recordLine, data []byte) error {
	if p.json == nil {
		if _, err := p.out.Write(data); err != nil {
			return err
		}
		return p.out.WriteByte('\n')
	}
	line.Payload, line.Bytes = textOrBase64(data)
	return p.json.Encode(line)
}

// end shows what is left in the buffer and, where nothing else did, the cursor.
// err is why printing ended.
func (p *printer) end(notes io.Writer, err error) error {
	if flushed := p.out.Flush(); flushed != nil {
		if errors.Is(err, flushed) { // the buffer says again what it said before
			return err
		}
		return errors.Join(flushed, err)
	}
	if p.cursors && p.json == nil {
		_, told := fmt.Fprintf(notes, "cursor: %v\n", p.at)
		return errors.Join(told, err)
	}
	return err
}
