package intake

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// csvDecoder gives each record under the header row as an object of strings, by
// encoding/csv. Blank lines are no records, and a CRLF inside quotes is read as LF.
//
// After a bad record reading goes on at the line where the parser stopped: for a
// record of the wrong length that is the next record. A quote too many is seen
// only where the next quote stands, so that a bad record can swallow lines up to
// there; its reason then names the last of them. Where the next quote never comes
// the rest of the file is swallowed, so that is final.
type csvDecoder struct {
	in     *input
	tape   *tape
	csv    *csv.Reader
	names  []string
	prefix [][]byte // `"name":` of each column, with the brace or comma before it
}

func newCSVDecoder(in *input, delimiter rune, guessed bool) (decoder, error) {
	t := &tape{r: in.Reader}
	r := csv.NewReader(bufio.NewReaderSize(t, tapeChunk))
	r.Comma = delimiter
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	d := &csvDecoder{in: in, tape: t, csv: r}
	header, err := d.read()
	if err != nil {
		return nil, d.headerError(err)
	}
	if reason := checkHeader(header, guessed); reason != "" {
		line, _ := r.FieldPos(0)
		return nil, &BadRecord{Line: int64(line), Reason: "header: " + reason, Raw: sample(t.record(r.InputOffset())), Fatal: true}
	}
	for i, name := range header {
		prefix := append([]byte(nil), "{,"[min(i, 1)])
		d.prefix = append(d.prefix, append(appendQuoted(prefix, name), ':'))
		d.names = append(d.names, strings.Clone(name))
	}
	return d, nil
}

// headerError makes every fault in the header final.
func (d *csvDecoder) headerError(err error) error {
	var bad *BadRecord
	if errors.As(err, &bad) {
		bad.Fatal = true
		bad.Reason = "header: " + bad.Reason
		return err
	}
	if err == io.EOF {
		return &BadRecord{Line: 1, Reason: "the file is empty: its first line must name the columns", Fatal: true}
	}
	return err
}

// checkHeader returns what is wrong with the names of the columns.
func checkHeader(header []string, guessed bool) string {
	first := make(map[string]int, len(header))
	for i, name := range header {
		switch {
		case !utf8.ValidString(name):
			return fmt.Sprintf("the name of column %d is %s", i+1, adviceLatin1)
		case strings.ContainsRune(name, 0):
			return fmt.Sprintf("the name of column %d holds a NUL character", i+1)
		case strings.ContainsRune(name, '\r'):
			return "its lines end with CR alone: tr '\\r' '\\n' makes LF of them"
		case name == "":
			return fmt.Sprintf("column %d of %d has no name: each column needs one", i+1, len(header))
		case first[name] > 0:
			return fmt.Sprintf("columns %d and %d have the same name %q: rename one", first[name], i+1, name)
		}
		first[name] = i + 1
	}
	if len(header) == 1 && guessed && strings.ContainsAny(header[0], ";\t|") {
		at := strings.IndexAny(header[0], ";\t|")
		return fmt.Sprintf("there is one column, and %q in its name: if that is the delimiter, say so by --delimiter %[1]q (if not, --delimiter ',')", header[0][at:at+1])
	}
	return ""
}

func (d *csvDecoder) next(dst []byte) ([]byte, int64, error) {
	fields, err := d.read()
	if err != nil {
		return nil, 0, err
	}
	line, _ := d.csv.FieldPos(0)
	if len(fields) != len(d.names) {
		return nil, 0, d.bad(line, 0, fmt.Sprintf("%s, the header has %d", count(len(fields), "field"), len(d.names)))
	}
	for i, field := range fields {
		if reason := checkField(field); reason != "" {
			at, column := d.csv.FieldPos(i)
			if at != line {
				column = 0 // a column of another line than the one named
			}
			return nil, 0, d.bad(line, column, fmt.Sprintf("field %q %s", d.names[i], reason))
		}
		dst = append(dst, d.prefix[i]...)
		dst = appendQuoted(dst, field)
	}
	dst = append(dst, '}')
	if err := jsonb.Check(dst); err != nil {
		return nil, 0, d.bad(line, 0, err.Error())
	}
	return dst, int64(line), nil
}

func checkField(field string) string {
	switch {
	case !utf8.ValidString(field):
		return "is " + adviceLatin1
	case strings.IndexByte(field, 0) >= 0:
		return "holds a NUL character, which PostgreSQL's jsonb can't hold"
	}
	return ""
}

// read reads one record, explaining the parser's errors.
func (d *csvDecoder) read() ([]string, error) {
	d.tape.forget(d.csv.InputOffset())
	fields, err := d.csv.Read()
	if err == nil {
		return fields, nil
	}
	if errors.Is(err, errRecordTooLong) {
		bad := d.bad(d.tape.line, 0, fmt.Sprintf("the record doesn't end within %d bytes: is a quote on its first line never closed?", jsonb.MaxBytes))
		bad.Fatal = true
		return nil, bad
	}
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return nil, d.badQuote(parse)
	}
	return nil, err
}

// badQuote explains a fault in the quotes of a record.
func (d *csvDecoder) badQuote(parse *csv.ParseError) error {
	column := parse.Column
	if parse.Line != parse.StartLine {
		column = 0 // it is of another line than the one named
	}
	if errors.Is(parse.Err, csv.ErrBareQuote) {
		return d.bad(parse.StartLine, column, `a quote in a field that doesn't begin with one: the whole field must be quoted, and a quote in it doubled ("")`+through(parse))
	}
	if d.neverClosed() {
		bad := d.bad(parse.StartLine, 0, "a quote opened in this record is never closed, so that the rest of the file is read as one field")
		bad.Fatal = true
		return bad
	}
	return d.bad(parse.StartLine, column, `text after the closing quote of a field: a quote in a quoted field must be doubled ("")`+through(parse))
}

// through names the last line of a bad record, where it isn't the first.
func through(parse *csv.ParseError) string {
	if parse.Line == parse.StartLine {
		return ""
	}
	return fmt.Sprintf(" (the fault is on line %d; the lines up to it belong to this bad record)", parse.Line)
}

// neverClosed tells whether the record reaches to the end of the file with an odd
// number of quotes.
func (d *csvDecoder) neverClosed() bool {
	raw := d.tape.record(d.csv.InputOffset())
	return d.tape.end && d.csv.InputOffset() == d.tape.seen && strings.Count(string(raw), `"`)%2 == 1
}

func (d *csvDecoder) bad(line, column int, reason string) *BadRecord {
	return &BadRecord{Line: int64(line), Column: column, Reason: reason, Raw: sample(d.tape.record(d.csv.InputOffset()))}
}

func (d *csvDecoder) close() error { return d.in.close() }

// count says how many of a thing there are.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
