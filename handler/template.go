package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/windrow-go/windrow/model"
)

// placeholder matches the name of a field between braces. A name begins with a
// letter or _ and ends with a letter, digit or _; between them there may also be
// spaces, dots and hyphens. So {print $1}, {"a": 1}, {a,b}, {2,3}, {} and
// {{.Name}} are none.
var placeholder = regexp.MustCompile(`(\{+)([\pL_](?:[\pL\pM\pN_. -]*[\pL\pM\pN_])?)(\}+)`)

// template is one argument of a command, cut at its placeholders.
type template []segment

// segment is literal text, followed by the value of a field unless field is
// empty.
type segment struct{ literal, field string }

// parseTemplate finds the placeholders of an argument. As many braces close a
// name as open it; of two or more pairs one is taken away, and the rest is text.
// After a $, as in ${HOME}, a single pair stays as it is.
func parseTemplate(argument string) template {
	var t template
	var text strings.Builder
	end := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(argument, -1) {
		name := argument[m[4]:m[5]]
		opens, closes := m[3]-m[2], m[7]-m[6]
		text.WriteString(argument[end:m[0]])
		end = m[1]
		switch pairs := min(opens, closes); {
		case pairs > 1:
			text.WriteString(strings.Repeat("{", opens-1) + name + strings.Repeat("}", closes-1))
		case opens == 1 && strings.HasSuffix(argument[:m[0]], "$"):
			text.WriteString(argument[m[0]:m[1]])
		default:
			text.WriteString(strings.Repeat("{", opens-1))
			t = append(t, segment{literal: text.String(), field: name})
			text.Reset()
			text.WriteString(strings.Repeat("}", closes-1))
		}
	}
	text.WriteString(argument[end:])
	return append(t, segment{literal: text.String()})
}

// hasFields tells whether the argument depends on the row.
func (t template) hasFields() bool { return len(t) > 1 }

// render puts the fields in. A string is put in without its quotes, any other
// value as its JSON text.
func (t template) render(fields map[string]json.RawMessage) (string, error) {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(s.literal)
		if s.field == "" {
			continue
		}
		value, ok := fields[s.field]
		if !ok {
			return "", fmt.Errorf("the row has no field %q, which an argument of the command names (for braces as text write {{%[1]s}})", s.field)
		}
		text, err := fieldText(value)
		if err != nil {
			return "", fmt.Errorf("field %q: %w", s.field, err)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func fieldText(value json.RawMessage) (string, error) {
	if !bytes.HasPrefix(value, []byte(`"`)) {
		var compact bytes.Buffer
		err := json.Compact(&compact, value)
		return compact.String(), err
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", err
	}
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("it has a NUL character, which no argument can hold: let the command read standard input")
	}
	return text, nil
}

// renderAll returns the arguments for one row's data.
func renderAll(templates []template, data json.RawMessage) ([]string, error) {
	var fields map[string]json.RawMessage
	arguments := make([]string, len(templates))
	for i, t := range templates {
		if t.hasFields() && fields == nil {
			fields = map[string]json.RawMessage{}
			if err := json.Unmarshal(data, &fields); err != nil {
				return nil, model.Permanent(fmt.Errorf("put the row's fields into the arguments: the data is not an object: %w", err))
			}
		}
		argument, err := t.render(fields)
		if err != nil {
			return nil, model.Permanent(err)
		}
		arguments[i] = argument
	}
	return arguments, nil
}
