package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/pagelog"
)

// lines reads lines of any length up to a limit, in memory bounded by it.
type lines struct {
	r      *bufio.Reader
	buf    []byte
	limit  int64
	number int64 // of the line returned last, from 1
}

func newLines(r io.Reader, limit int64) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line without its line feed. It is valid until the next
// call. A last line need not have a line feed; io.EOF means there is none.
func (l *lines) next() ([]byte, error) {
	l.number++
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		if int64(len(l.buf)+len(part)) > l.limit {
			return nil, fmt.Errorf("%w: %w: it is longer than %d bytes", errRejected, pagelog.ErrTooLarge, l.limit)
		}
		if err == nil && len(l.buf) == 0 {
			return part, nil
		}
		l.buf = append(l.buf, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buf) == 0:
			return nil, io.EOF
		case err == nil, errors.Is(err, io.EOF):
			return l.buf, nil
		default:
			return nil, fmt.Errorf("%w: %w", errInput, err)
		}
	}
}

// jsonLineLimit bounds a JSON line whose payload is within limit: a byte takes
// six characters at most, and there is room for eight keys of the greatest
// length.
func jsonLineLimit(limit int64) int64 { return 6*limit + 64<<10 }

// recordKey is a key that leads to a record.
type recordKey struct{ namespace, key []byte }

// check holds a key against the bounds of every log.
func (k *recordKey) check() error {
	switch {
	case len(k.key) == 0:
		return errors.New("a key has at least one byte")
	case len(k.key) > checkpoint.MaxKey:
		return fmt.Errorf("a key of %d bytes, none may have over %d", len(k.key), checkpoint.MaxKey)
	case len(k.namespace) > checkpoint.MaxNamespace:
		return fmt.Errorf("a namespace of %d bytes, none may have over %d", len(k.namespace), checkpoint.MaxNamespace)
	}
	return nil
}

// parsedLine is what a line of input says.
type parsedLine struct {
	payload []byte
	keys    []recordKey
}

// parseLine reads {"payload": text} or {"payload_base64": text}, with keys if
// there are any. The fields revision, record and cursor, which cat prints beside
// them, are passed over.
func parseLine(line []byte) (parsedLine, error) {
	var r parsedLine
	if !utf8.Valid(line) {
		return r, errors.New("it is not valid UTF-8; use payload_base64 for bytes that are no text")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return r, errors.New(`it is not a JSON object such as {"payload": "text"}`)
	}
	seen, err := object(d, r.take)
	if err != nil {
		return r, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("there is something behind the JSON object")
	}
	if seen["payload"] == seen["payload_base64"] {
		return r, errors.New("it must have exactly one of the keys payload and payload_base64")
	}
	if at := loneSurrogate(line); at >= 0 {
		return r, fmt.Errorf("the escape at byte %d is half of a UTF-16 pair, which is no text; use payload_base64", at+1)
	}
	return r, nil
}

// object reads a JSON object behind its brace, and has the value of each field
// taken. It returns which fields there were.
func object(d *json.Decoder, take func(d *json.Decoder, name string) error) (map[string]bool, error) {
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, malformed(err)
		}
		name, _ := key.(string)
		if seen[name] {
			return nil, fmt.Errorf("key %q is there twice", name)
		}
		seen[name] = true
		if err := take(d, name); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, malformed(err)
	}
	return seen, nil
}

// take takes one field of a line.
func (r *parsedLine) take(d *json.Decoder, name string) (err error) {
	switch name {
	case "revision", "record", "cursor":
		value, err := d.Token()
		if err != nil {
			return malformed(err)
		}
		if _, nested := value.(json.Delim); nested {
			return fmt.Errorf("the value of %q is no plain value", name)
		}
		return nil
	case "payload", "payload_base64":
		r.payload, err = bytesOf(d, name)
		return err
	case "keys":
		return r.takeKeys(d)
	}
	return unknownField(name, "payload", "payload_base64", "keys")
}

// takeKeys takes a list of keys.
func (r *parsedLine) takeKeys(d *json.Decoder) error {
	value, err := d.Token()
	if err != nil {
		return malformed(err)
	}
	if value != json.Delim('[') {
		return errors.New(`the value of "keys" is not a list such as [{"namespace": "orders", "key": "7"}]`)
	}
	for d.More() {
		if value, err = d.Token(); err != nil {
			return malformed(err)
		}
		if value != json.Delim('{') {
			return errors.New(`one of the keys is not an object such as {"namespace": "orders", "key": "7"}`)
		}
		var k recordKey
		seen, err := object(d, k.take)
		if err != nil {
			return err
		}
		if seen["key"] == seen["key_base64"] || seen["namespace"] && seen["namespace_base64"] {
			return errors.New("each of the keys must have exactly one of key and key_base64, and at most one of namespace and namespace_base64")
		}
		if err := k.check(); err != nil {
			return err
		}
		r.keys = append(r.keys, k)
	}
	if _, err := d.Token(); err != nil {
		return malformed(err)
	}
	return nil
}

// take takes one field of a key.
func (k *recordKey) take(d *json.Decoder, name string) (err error) {
	switch name {
	case "namespace", "namespace_base64":
		k.namespace, err = bytesOf(d, name)
	case "key", "key_base64":
		k.key, err = bytesOf(d, name)
	default:
		err = unknownField(name, "namespace", "namespace_base64", "key", "key_base64")
	}
	return err
}

// bytesOf reads the value of a field: text, or base64 if its name says so.
func bytesOf(d *json.Decoder, name string) ([]byte, error) {
	value, err := d.Token()
	if err != nil {
		return nil, malformed(err)
	}
	text, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("the value of %q is not a string", name)
	}
	if !strings.HasSuffix(name, "_base64") {
		return []byte(text), nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the value of %q is not base64 with padding: %w", name, err)
	}
	return b, nil
}

func unknownField(name string, known ...string) error {
	return fmt.Errorf("key %q is unknown%s", name, didYouMean(name, "", known))
}

func malformed(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("it is not valid JSON: %w", err)
}

// loneSurrogate returns where valid JSON has a \u escape that is half of a
// pair, which the JSON package would replace, or -1.
func loneSurrogate(line []byte) int {
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' {
			continue
		}
		r, ok := escape(line[i:])
		switch {
		case !ok:
			i++ // the character behind the backslash
		case !utf16.IsSurrogate(r):
			i += 5
		default:
			low, _ := escape(line[i+6:])
			if utf16.DecodeRune(r, low) == utf8.RuneError {
				return i
			}
			i += 11
		}
	}
	return -1
}

// escape reads \uXXXX at the beginning of b.
func escape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}
