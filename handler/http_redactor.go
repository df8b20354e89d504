package handler

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// redactor hides secrets in a text that comes from outside.
type redactor struct {
	secrets  []string // the longest first
	literals *strings.Replacer
}

// shortestSecret is how long a word must be to be hidden where a service repeats
// it: short ones are no secrets, and occur by chance.
const shortestSecret = 8

// newRedactor returns what hides the headers' values, and the user, password and
// query of the URL, as they are and as they stand in a JSON string.
func newRedactor(target *url.URL, header http.Header) redactor {
	var secrets []string
	for name, values := range header {
		if slices.Contains(openHeaders, name) {
			continue
		}
		for _, value := range values {
			secrets = append(append(secrets, value), strings.Fields(value)...)
		}
	}
	password, _ := target.User.Password()
	secrets = append(secrets, target.User.Username(), password, target.User.String())
	secrets = append(secrets, target.RawQuery)
	for _, values := range target.Query() {
		secrets = append(secrets, values...)
	}
	secrets = slices.DeleteFunc(secrets, func(secret string) bool { return len(secret) < shortestSecret })
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, hidden)
	}
	return redactor{secrets: secrets, literals: strings.NewReplacer(pairs...)}
}

const hidden = "***"

// Replace returns the text with its secrets hidden.
func (r redactor) Replace(text string) string {
	text = r.literals.Replace(text)
	if !strings.Contains(text, `\`) {
		return text
	}
	plain, from := unescaped(text)
	var out strings.Builder
	for i := 0; i < len(plain); {
		if n := r.secretAt(plain[i:]); n > 0 {
			out.WriteString(hidden)
			i += n
		} else {
			out.WriteString(text[from[i]:from[i+1]])
			i++
		}
	}
	return out.String()
}

// secretAt returns the length of the secret with which the text begins, or 0.
func (r redactor) secretAt(text string) int {
	for _, secret := range r.secrets {
		if strings.HasPrefix(text, secret) {
			return len(secret)
		}
	}
	return 0
}

// unescaped returns the text without the escapes of JSON, of which encoders use more or
// fewer. Byte i of it stands in the text from from[i] up to from[i+1].
func unescaped(text string) (plain string, from []int) {
	var b strings.Builder
	for i := 0; i < len(text); {
		char, n := charAt(text[i:])
		b.WriteString(char)
		for range len(char) { // all of an escape belongs to the last byte that it stands for
			from = append(from, i)
		}
		i += n
	}
	return b.String(), append(from, len(text))
}

// charAt returns what the text begins with, and how many bytes of the text that takes.
func charAt(text string) (char string, n int) {
	if len(text) < 2 || text[0] != '\\' {
		return text[:1], 1
	}
	switch text[1] {
	case '"', '\\', '/':
		return text[1:2], 2
	case 'u':
		r, n := unitAt(text)
		if low, m := unitAt(text[n:]); n > 0 && m > 0 && utf16.IsSurrogate(r) {
			return string(utf16.DecodeRune(r, low)), n + m
		}
		if n > 0 {
			return string(r), n
		}
	}
	return text[:1], 1
}

// unitAt reads an escaped unit of UTF-16, if the text begins with one.
func unitAt(text string) (unit rune, n int) {
	const length = len(`\u0000`)
	if len(text) < length || text[:2] != `\u` {
		return 0, 0
	}
	value, err := strconv.ParseUint(text[2:length], 16, 16)
	if err != nil {
		return 0, 0
	}
	return rune(value), length
}
