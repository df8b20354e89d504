package errorgroups

import "strings"

// withoutQuoted returns a message with <text> between its quotation marks, single,
// double or backward ones. A mark amid a word, as in can't, is none; an escaped one
// belongs to the text.
func withoutQuoted(message string) string {
	if !strings.ContainsAny(message, "\"'`") {
		return message
	}
	var out strings.Builder
	for i := 0; i < len(message); {
		if end := quotedEnd(message, i); end > i {
			out.WriteByte(message[i])
			out.WriteString("<text>")
			out.WriteByte(message[i])
			i = end
			continue
		}
		out.WriteByte(message[i])
		i++
	}
	return out.String()
}

// quotedEnd returns the end of the quoted text that begins at i, its marks included,
// or i if none does.
func quotedEnd(s string, i int) int {
	mark := s[i]
	if strings.IndexByte("\"'`", mark) < 0 || i > 0 && isAlnum(s[i-1]) {
		return i
	}
	for k := i + 1; k < len(s); k++ {
		switch {
		case s[k] == '\\':
			k++
		case s[k] == mark && whole(s, k+1):
			return k + 1
		}
	}
	return i
}
