package errorgroups

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds a message, in bytes.
const maxMessage = 1024

// cutMark stands where a message was cut.
const cutMark = " … "

// Message returns the text with placeholders for what differs from row to row, as
// valid UTF-8 on one line, and of at most a kilobyte: what is longer loses its
// middle, since errors begin with their place and end with their cause. The message
// of a message is itself.
func Message(text string) string {
	var s scanner
	return string(s.message(text))
}

// scanner rewrites one text at a time.
type scanner struct {
	text string
	out  []byte
	// Where the last word and the one before it stand in out; a placeholder's name
	// counts as a word, as it will when the message is read again.
	word, before span
}

type span struct{ from, to int }

// message is Message; its result is good until the next call.
func (s *scanner) message(text string) []byte {
	out := s.scan(text)
	if len(out) > maxMessage {
		out = s.scan(withoutMiddle(string(out))) // a number may have lost the word before it
	}
	return out
}

func (s *scanner) scan(text string) []byte {
	if strings.Contains(text, "\x1b[") {
		text = withoutColours(text)
	}
	s.text, s.out, s.word, s.before = text, s.out[:0], span{}, span{}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case isAlnum(c):
			i = s.token(i)
		case c == ':':
			i = s.colon(i)
		case c == '-' || c == '+':
			i = s.sign(i)
		case ' ' < c && c < utf8.RuneSelf && c != 0x7f:
			s.out = append(s.out, c)
			i++
		default:
			i = s.other(i)
		}
	}
	for len(s.out) > 0 && s.out[len(s.out)-1] == ' ' {
		s.out = s.out[:len(s.out)-1]
	}
	return s.out
}

// other copies one character that is neither a letter or digit nor punctuation of
// ASCII. What can't be seen becomes a space, and several spaces one.
func (s *scanner) other(i int) int {
	r, size := utf8.DecodeRuneInString(s.text[i:])
	switch {
	case !unicode.IsSpace(r) && unicode.IsGraphic(r):
		s.out = utf8.AppendRune(s.out, r)
	case len(s.out) > 0 && s.last() != ' ':
		s.out = append(s.out, ' ')
	}
	return i + size
}

// colon copies a colon, or replaces the address that begins with two of them.
func (s *scanner) colon(i int) int {
	if !isAlnum(s.last()) && strings.HasPrefix(s.text[i:], "::") {
		if end, name := colons(s.text, i); end > i {
			return s.placeholder(name, end)
		}
	}
	s.out = append(s.out, ':')
	return i + 1
}

// sign copies a sign that joins words, and takes the one that belongs to a number.
func (s *scanner) sign(i int) int {
	next := i + 1
	begins := len(s.out) == 0 || strings.IndexByte(" ([{=:,<>\"'", s.last()) >= 0
	if begins && next < len(s.text) && isDigit(s.text[next]) {
		if _, name := s.match(next); name == "" {
			if end, unit := number(s.text, next); end > next {
				return s.number(i, end, unit)
			}
		}
	}
	s.out = append(s.out, s.text[i])
	return next
}

// match looks for a value that is more than a number.
func (s *scanner) match(i int) (end int, name string) {
	for _, match := range matchers {
		if end, name := match(s.text, i); end > i {
			return end, name
		}
	}
	return i, ""
}

// token writes what begins with the letter or digit at i, and returns its end.
func (s *scanner) token(i int) int {
	if end, name := s.match(i); end > i {
		return s.placeholder(name, end)
	}
	run := s.text[i:runEnd(s.text, i)]
	if len(run) == len("23505") && s.adjoins() && strings.EqualFold(s.at(s.word), "SQLSTATE") {
		s.out = append(s.out, run...)
		return i + len(run)
	}
	if isDigit(run[0]) {
		if end, unit := number(s.text, i); end > i {
			return s.number(i, end, unit)
		}
	}
	switch stem := stemOf(run); stem {
	case run:
		word := s.withProtocol(i, run)
		s.write(word)
		return i + len(word)
	case "":
		return s.placeholder("id", i+len(run))
	default:
		s.write(stem)
		return s.placeholder("n", i+len(run))
	}
}

// withProtocol is the word HTTP with its version, if it has one: not the version but
// the number after it is a status.
func (s *scanner) withProtocol(i int, word string) string {
	rest := s.text[i+len(word):]
	if word != "HTTP" || len(rest) < 2 || rest[0] != '/' || !isDigit(rest[1]) {
		return word
	}
	n := 2
	if len(rest) >= 4 && rest[2] == '.' && isDigit(rest[3]) {
		n = 4
	}
	if n < len(rest) && isAlnum(rest[n]) {
		return word
	}
	return s.text[i : i+len(word)+n]
}

// number writes the number from i to end, and the unit that follows it.
func (s *scanner) number(i, end int, unit string) int {
	if text := s.text[i:end]; unit == "" && standsAlone(s.text[end:]) && s.isCode(text) {
		s.out = append(s.out, text...)
		return end
	}
	s.placeholder("n", end)
	if unit != "" {
		s.write(unit)
	}
	return end + len(unit)
}

// codeWords are followed by numbers that tell messages apart.
var codeWords = []string{
	"code", "exitcode", "returncode", "retcode", "statuscode", "status", "signal", "errno", "exit",
	"http", "http/1", "http/1.0", "http/1.1", "http/2", "http/2.0", "http/3",
}

// codeEndings are the same as the ends of names.
var codeEndings = []string{"Code", "Status", "Signal", "Errno"}

// isCode tells whether the number to be written next says what went wrong.
func (s *scanner) isCode(number string) bool {
	digits := strings.TrimPrefix(number, "-")
	if len(digits) > 3 || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	if len(s.out) == 0 {
		return len(number) == 3 && "100" <= number && number <= "599"
	}
	word := s.at(s.word)
	switch {
	case !s.adjoins():
		return false
	case strings.EqualFold(word, "error"): // HTTP Error 404, os error 2, and curl's returned error: 404
		return len(s.out) == s.word.to+1 && s.last() == ' ' || s.at(s.before) == "returned"
	}
	return slices.ContainsFunc(codeWords, func(w string) bool { return strings.EqualFold(w, word) }) ||
		slices.ContainsFunc(codeEndings, func(e string) bool { return strings.HasSuffix(word, e) })
}

// adjoins tells whether only punctuation of the kind that introduces a value stands
// after the last word.
func (s *scanner) adjoins() bool {
	const introduces = ` :=/("'[#`
	gap := s.out[s.word.to:]
	return s.word.to > 0 && len(gap) > 0 && len(gap) <= 4 && strings.Trim(string(gap), introduces) == "" &&
		!strings.Contains(string(gap), "::") // which may begin an address
}

// standsAlone tells whether a number before rest is not the beginning of a place such as
// 12:34 or of an address.
func standsAlone(rest string) bool {
	return len(rest) < 2 || rest[0] != ':' || rest[1] != ':' && !isAlnum(rest[1])
}

// write writes a word.
func (s *scanner) write(word string) {
	s.before, s.word = s.word, span{len(s.out), len(s.out) + len(word)}
	s.out = append(s.out, word...)
}

// placeholder writes one for what ends at end, and returns end.
func (s *scanner) placeholder(name string, end int) int {
	s.out = append(s.out, '<')
	s.write(name)
	s.out = append(s.out, '>')
	return end
}

func (s *scanner) at(place span) string { return string(s.out[place.from:place.to]) }

// last is the last byte written, or 0.
func (s *scanner) last() byte {
	if len(s.out) == 0 {
		return 0
	}
	return s.out[len(s.out)-1]
}

// withoutMiddle cuts a message to somewhat less than the limit, between words if it
// has any.
func withoutMiddle(message string) string {
	const room = maxMessage - 16 // for the mark, and placeholders longer than what they replace
	head := message[:room/2]
	if i := strings.LastIndexByte(head, ' '); i > 0 {
		head = head[:i]
	}
	tail := message[len(message)-room/2:]
	if i := strings.IndexByte(tail, ' '); i >= 0 {
		tail = tail[i+1:]
	}
	return strings.ToValidUTF8(head, "") + cutMark + strings.ToValidUTF8(tail, "")
}

// withoutColours drops what makes terminals show colours.
func withoutColours(text string) string {
	parts := strings.Split(text, "\x1b[")
	for i, part := range parts[1:] {
		end := endOf(part, 0, func(c byte) bool { return isDigit(c) || c == ';' })
		if end < len(part) && part[end] == 'm' {
			parts[i+1] = part[end+1:]
		} else {
			parts[i+1] = "\x1b[" + part
		}
	}
	return strings.Join(parts, "")
}
