package faultproxy

import (
	"bytes"
	"strings"
)

// session follows what a client says, far enough to know each COMMIT and the
// statements of the transaction that it ends. It is fed by one goroutine.
type session struct {
	statements  map[string]string // prepared ones, by name
	portals     map[string]string // bound ones: the statement's text, by name
	open        bool              // in a transaction that the client began
	transaction []string          // texts executed in it
}

func newSession() *session {
	return &session{statements: map[string]string{}, portals: map[string]string{}}
}

// hear takes one message of the client. When it asks for a COMMIT to be carried
// out, it returns the texts of the transaction's statements, and true.
func (s *session) hear(kind byte, body []byte) ([]string, bool) {
	switch kind {
	case 'Q': // Query: text
		text, _ := word(body)
		return s.execute(text)
	case 'P': // Parse: statement, text, ...
		name, rest := word(body)
		s.statements[name], _ = word(rest)
	case 'B': // Bind: portal, statement, ...
		portal, rest := word(body)
		name, _ := word(rest)
		s.portals[portal] = s.statements[name]
	case 'E': // Execute: portal, ...
		portal, _ := word(body)
		return s.execute(s.portals[portal])
	case 'C': // Close: 'S' or 'P', name
		s.forget(body)
	}
	return nil, false
}

func (s *session) execute(text string) ([]string, bool) {
	switch leadingWord(text) {
	case "commit", "end":
		ended := s.transaction
		s.open, s.transaction = false, nil
		return ended, true
	case "rollback", "abort":
		s.open, s.transaction = false, nil
	case "begin", "start":
		s.open, s.transaction = true, nil
	default:
		if s.open {
			s.transaction = append(s.transaction, text)
		}
	}
	return nil, false
}

func (s *session) forget(body []byte) {
	if len(body) == 0 {
		return
	}
	name, _ := word(body[1:])
	if body[0] == 'S' {
		delete(s.statements, name)
		return
	}
	delete(s.portals, name)
}

// word splits the string that ends at the first NUL off.
func word(body []byte) (text string, rest []byte) {
	before, after, _ := bytes.Cut(body, []byte{0})
	return string(before), after
}

// leadingWord is a statement's first word in lower case. It is empty for ROLLBACK
// TO, which ends no transaction.
func leadingWord(text string) string {
	const enough = 100 // a statement that controls a transaction is no longer
	words := strings.Fields(strings.ToLower(text[:min(len(text), enough)]))
	if len(words) == 0 || (words[0] == "rollback" && len(words) > 1 && words[1] == "to") {
		return ""
	}
	return strings.TrimRight(words[0], ";")
}
