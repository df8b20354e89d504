package intake

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// decoderFor finds the decoder by what was asked for, else by the file's name,
// else by its content.
func (s *Source) decoderFor(file inputFile, in *input) (decoder, error) {
	format := s.opts.Format
	if format == Auto {
		format = FormatOf(file.name)
	}
	if head, _ := in.Peek(4); format == Parquet || format == Auto && string(head) == "PAR1" {
		return s.openParquet(file, in)
	}
	if err := in.checkText(); err != nil {
		return nil, err
	}
	if format == JSON || format == Auto {
		var err error
		if format, err = in.sniffJSON(format); err != nil {
			return nil, err
		}
	}
	switch format {
	case CSV:
		return newCSVDecoder(in, s.delimiter(file), s.opts.Delimiter == 0)
	case JSONL:
		return &jsonlDecoder{in: in, lines: lineReader{br: in.Reader}}, nil
	case JSON:
		return &jsonDecoder{in: in, cut: valueReader{br: in.Reader, line: 1}, file: file.name}, nil
	default:
		return &linesDecoder{in: in, lines: lineReader{br: in.Reader}}, nil
	}
}

func (s *Source) delimiter(file inputFile) rune {
	switch {
	case s.opts.Delimiter != 0:
		return s.opts.Delimiter
	case innerExt(file.name) == ".tsv":
		return '\t'
	}
	return ','
}

// checkText drops the byte order mark of UTF-8 and refuses UTF-16, with its mark
// or without.
func (in *input) checkText() error {
	head, err := in.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(head) == "\xef\xbb\xbf" {
		_, err := in.Discard(len(head))
		return err
	}
	head, _ = in.Peek(min(in.Buffered(), 64))
	if isUTF16(head) {
		return &BadRecord{Line: 1, Reason: adviceUTF16, Raw: sample(head), Fatal: true}
	}
	return nil
}

// isUTF16 tells UTF-16 by its byte order mark, or by every other byte being NUL
// as they are in western text.
func isUTF16(head []byte) bool {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return true
	}
	head = head[:len(head)&^1]
	var nul [2]int
	for i, b := range head {
		if b == 0 {
			nul[i%2]++
		}
	}
	pairs := len(head) / 2
	return pairs > 1 && (nul[0] == pairs && nul[1] == 0 || nul[1] == pairs && nul[0] == 0)
}

// sniffJSON tells JSON Lines from JSON by what stands on the first line. With
// Auto, what doesn't look like either is lines: numbers alone as well, since the
// zeros before a number (a zip code) are gone once it is read as one.
func (in *input) sniffJSON(format Format) (Format, error) {
	first, more, err := in.firstLine()
	if err != nil {
		return format, err
	}
	whole := jsonb.Check(first) == nil
	text := strings.TrimLeft(string(first), " \t\r\n")
	switch {
	case whole && more && strings.ContainsAny(text[:1], `{["`):
		return JSONL, nil
	case format == JSON:
		return JSON, nil
	case whole && strings.ContainsAny(text[:1], `{"`):
		return JSONL, nil
	case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		if whole || opensJSON(text) {
			return JSON, nil
		}
	}
	return Lines, nil
}

// opensJSON tells whether a text that begins with a bracket goes on as JSON does,
// and not as a line of a log does.
func opensJSON(text string) bool {
	next := strings.TrimLeft(text[1:], " \t\r\n")
	if next == "" {
		return true
	}
	if text[0] == '{' {
		return next[0] == '"' || next[0] == '}'
	}
	return strings.IndexByte(`{["]`, next[0]) >= 0 || isPrefixOfJSON(text)
}

// isPrefixOfJSON tells whether text is JSON up to its end, or up to a token that
// is cut there.
func isPrefixOfJSON(text string) bool {
	const longestToken = 8
	var bad *jsonb.Error
	err := jsonb.Check([]byte(text))
	return err == nil || errors.As(err, &bad) && bad.Offset >= len(text)-longestToken
}

// firstLine returns the first line that isn't blank, with the blanks before it,
// as far as the buffer reaches; more tells whether something follows. It takes
// nothing away, and waits for no more input than it needs.
func (in *input) firstLine() (line []byte, more bool, err error) {
	for n := 1; ; n = len(line) + 1 {
		_, err := in.Peek(n)
		if errors.Is(err, bufio.ErrBufferFull) {
			return line, true, nil
		}
		if err != nil && err != io.EOF {
			return nil, false, err
		}
		seen, _ := in.Peek(in.Buffered())
		if len(seen) == len(line) { // the end of the file
			return line, false, nil
		}
		line = seen
		start := len(seen) - len(bytes.TrimLeft(seen, " \t\r\n"))
		if end := bytes.IndexByte(seen[start:], '\n'); end >= 0 {
			end += start
			if len(bytes.TrimSpace(seen[end:])) > 0 {
				return seen[:end], true, nil
			}
		}
	}
}
