package intake

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// jsonDecoder gives the elements of one array, or several values that stand one
// after another. It never holds more than one of them. An element that is no JSON
// but has its brackets and quotes in order is one bad record; after a fault in
// the structure itself nothing more is read.
type jsonDecoder struct {
	in   *input
	cut  valueReader
	file string // for advice

	began   bool
	inArray bool
	held    *heldValue // the first of several values, until a second is seen
}

// heldValue is a value read ahead.
type heldValue struct {
	data []byte
	line int64
	err  error
}

func (d *jsonDecoder) next(dst []byte) ([]byte, int64, error) {
	if !d.began {
		d.began = true
		if err := d.begin(); err != nil {
			return nil, 0, err
		}
	}
	if h := d.held; h != nil {
		d.held = nil
		return append(dst, h.data...), h.line, h.err
	}
	if d.inArray {
		if err := d.step(); err != nil {
			return nil, 0, err
		}
	}
	return d.value(dst)
}

// begin finds out what the file holds: an array, or values one after another. One
// object alone is refused: its rows stand somewhere in it, where only the user
// knows.
func (d *jsonDecoder) begin() error {
	b, err := d.cut.peek()
	if err != nil {
		return err
	}
	if b == '[' {
		d.inArray = true
		return d.cut.skip(1)
	}
	data, line, err := d.value(nil)
	var bad *BadRecord
	if err != nil && (!errors.As(err, &bad) || bad.Fatal) {
		return err
	}
	if _, end := d.cut.peek(); end == io.EOF && b == '{' {
		return &BadRecord{Line: line, Reason: d.adviseObject(data), Fatal: true}
	}
	d.held = &heldValue{data: data, line: line, err: err}
	return nil
}

// adviseObject says what to do about a file that is one object, naming the first
// field that holds an array.
func (d *jsonDecoder) adviseObject(data []byte) string {
	field := "rows"
	for name, value := range members(data) {
		if value[0] == '[' {
			field = string(name)
			break
		}
	}
	file := d.file
	if file == stdinName {
		file = "FILE"
	}
	return fmt.Sprintf("the file is one JSON object, not an array of rows; if they stand in its field %q: jq -c %s %s | windrow run -",
		field, shellQuote(fmt.Sprintf(".[%q][]", field)), shellQuote(file))
}

// shellQuote returns s as one word for a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// step goes to the next element of the array; the error is io.EOF behind the last.
func (d *jsonDecoder) step() error {
	b, err := d.cut.peek()
	if err == io.EOF {
		return d.fatal("the file ends before the array does: is it complete?")
	}
	if err != nil {
		return err
	}
	first := d.cut.values == 0
	switch {
	case b == ']':
		return d.end()
	case first:
		return nil
	case b != ',':
		return d.fatal(fmt.Sprintf(`%q where "," or "]" is expected after an element`, b))
	}
	if err := d.cut.skip(1); err != nil {
		return err
	}
	if b, err = d.cut.peek(); err == nil && b == ']' {
		return d.fatal(`"]" after a comma, where an element is expected`)
	}
	return nil
}

// end makes sure that nothing stands behind the array.
func (d *jsonDecoder) end() error {
	if err := d.cut.skip(1); err != nil {
		return err
	}
	b, err := d.cut.peek()
	if err == nil {
		return d.fatal(fmt.Sprintf("there is more after the array: %q; for one array a line the format is jsonl", b))
	}
	return err
}

// value reads the value that comes next.
func (d *jsonDecoder) value(dst []byte) ([]byte, int64, error) {
	raw, err := d.cut.next()
	line := d.cut.start
	switch {
	case err == io.ErrUnexpectedEOF && !d.in.compressed:
		return nil, line, d.fatal(fmt.Sprintf("the file ends in the middle of the value that starts on line %d: is it complete?", line))
	case err == io.EOF && d.inArray:
		return nil, line, d.fatal("the file ends where an element is expected: is it complete?")
	case err != nil:
		return nil, line, err
	}
	if err := jsonb.Check(raw); err != nil {
		return nil, line, &BadRecord{Line: line, Reason: err.Error(), Raw: sample(raw), Fatal: len(raw) == 0}
	}
	return jsonb.AppendCompact(dst, raw), line, nil
}

func (d *jsonDecoder) fatal(reason string) error {
	return &BadRecord{Line: d.cut.line, Reason: reason, Fatal: true}
}

func (d *jsonDecoder) close() error { return d.in.close() }
