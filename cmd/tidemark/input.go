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
	"unicode/utf16"
	"unicode/utf8"

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
// six characters at most, and the rest is small.
func jsonLineLimit(limit int64) int64 { return 6*limit + 4096 }

// parsePayload reads {"payload": text} or {"payload_base64": text}. The keys
// revision and record, which cat prints beside them, are passed over.
func parsePayload(line []byte) ([]byte, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("it is not valid UTF-8; use payload_base64 for bytes that are no text")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New(`it is not a JSON object such as {"payload": "text"}`)
	}
	var payload []byte
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, malformed(err)
		}
		name, _ := key.(string)
		value, err := d.Token()
		if err != nil {
			return nil, malformed(err)
		}
		if seen[name] {
			return nil, fmt.Errorf("key %q is there twice", name)
		}
		seen[name] = true
		if payload, err = takeField(payload, name, value); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, malformed(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the JSON object")
	}
	if seen["payload"] == seen["payload_base64"] {
		return nil, errors.New("it must have one of the keys payload and payload_base64")
	}
	if at := loneSurrogate(line); at >= 0 {
		return nil, fmt.Errorf("the escape at byte %d is half of a UTF-16 pair, which is no text; use payload_base64", at+1)
	}
	return payload, nil
}

// takeField handles one key of the object.
func takeField(payload []byte, name string, value json.Token) ([]byte, error) {
	switch name {
	case "revision", "record", "cursor":
		if _, nested := value.(json.Delim); nested {
			return nil, fmt.Errorf("the value of %q is no plain value", name)
		}
		return payload, nil
	case "payload", "payload_base64":
	default:
		return nil, fmt.Errorf("key %q is unknown%s", name, didYouMean(name, "", []string{"payload", "payload_base64"}))
	}
	text, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("the value of %q is not a string", name)
	}
	if name == "payload" {
		return []byte(text), nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the value of %q is not base64 with padding: %w", name, err)
	}
	return b, nil
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
