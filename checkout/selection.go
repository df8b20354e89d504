package checkout

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/windrow-go/windrow/model"
)

// Selection says which rows a reprocess puts back: those that all its conditions
// select. At least one field is set. Rows that were never tried need no putting
// back, and are left alone.
type Selection struct {
	// All selects every row that was ever tried. No other field is set then.
	All bool
	// Failed selects the rows that failed for good.
	Failed bool
	// Error selects the rows that failed for good with such an error: a text that
	// occurs in it, in which * stands for anything, and so do the placeholders that
	// errors are grouped with, such as <n>.
	Error string
	// NotVersion selects the processed rows whose outcome is of another version of
	// the handler than this, or of none.
	NotVersion string
	// Where selects by a condition in SQL over the table's columns. It is only ever
	// evaluated in transactions that read.
	Where string
	// Keys selects rows by the caller's own keys.
	Keys []string
	// MoreKeys does so too, for keys too many to be held at once: it returns the next
	// n of them, or fewer at the end. Name says whose keys these are.
	MoreKeys func(n int) ([]string, error)
	Name     string
}

// String is how a run's row describes the selection.
func (s Selection) String() string {
	var parts []string
	add := func(set bool, format string, args ...any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(s.All, "all")
	add(s.Failed, "failed")
	add(s.Error != "", "error %s", s.Error)
	add(s.NotVersion != "", "not version %s", s.NotVersion)
	add(s.Where != "", "where %s", s.Where)
	add(len(s.Keys) > 0, "keys %s", strings.Join(s.Keys, ", "))
	add(s.MoreKeys != nil, "keys of %s", s.Name)
	return strings.Join(parts, "; ")
}

var (
	errSelection = errors.New("select rows by one of: all, failed, error, version, where, keys; all goes with no other")
	// ErrCondition says that the condition of Selection.Where is not valid SQL over
	// the table's columns, or fails for some row.
	ErrCondition = errors.New("the condition can't be evaluated")
)

func (s Selection) validate() error {
	some := s.Failed || s.Error != "" || s.NotVersion != "" || s.Where != "" || s.byKeys()
	if s.All == some || len(s.Keys) > 0 && s.MoreKeys != nil {
		return errSelection
	}
	return nil
}

func (s Selection) byKeys() bool { return len(s.Keys) > 0 || s.MoreKeys != nil }

// eachKeys goes through the selection's keys, some at a time; position counts them.
func (s Selection) eachKeys(each func(keys []string, position int64) error) error {
	next := s.MoreKeys
	if next == nil {
		rest := cleanKeys(s.Keys)
		next = func(n int) ([]string, error) {
			part := rest[:min(n, len(rest))]
			rest = rest[len(part):]
			return part, nil
		}
	}
	for position := int64(0); ; {
		keys, err := next(chunk)
		if err != nil || len(keys) == 0 {
			return err
		}
		position += int64(len(keys))
		if err := each(cleanKeys(keys), position); err != nil {
			return err
		}
	}
}

// Reprocessed tells what a reprocess did.
type Reprocessed struct {
	// Run is the id of its row in runs, which the rows put back carry.
	Run int64 `json:"run"`
	// PutBack counts the rows that may be checked out again.
	PutBack int64 `json:"put_back"`
	// Deferred counts the rows that a worker holds: they begin their next round
	// at their check-in.
	Deferred int64 `json:"deferred"`
	// Resumed is true if the run had been cut off before and was gone on with; the
	// counts are of all of it.
	Resumed bool `json:"resumed,omitempty"`
	// Missing are keys that no row has, as many as are worth naming, and MissingKeys
	// is how many there are.
	Missing     []string `json:"missing,omitempty"`
	MissingKeys int64    `json:"missing_keys,omitempty"`
}

// mostMissing bounds the missing keys that are named.
const mostMissing = 100

func (r *Reprocessed) miss(keys []string) {
	r.MissingKeys += int64(len(keys))
	r.Missing = append(r.Missing, keys[:min(len(keys), mostMissing-len(r.Missing))]...)
}

// The selections as SQL over a row named d; {began} is when the run began. Rows
// checked out since then are worked with what the run is about, and are left alone.
// The words are both engines'.
const (
	processedCondition = `d.is_processed AND d.last_checkout <= {began}`
	failedCondition    = `d.is_processed AND d.error IS NOT NULL AND d.last_checkout <= {began}`
	triedCondition     = `(d.is_processed OR d.checked_out_by IS NOT NULL OR d.attempts > 0) AND d.last_checkout <= {began}`
)

// condition is what an index can find by, and what is asked again when a row is put
// back.
func (s Selection) condition(began string) string {
	condition := triedCondition
	switch {
	case s.Failed || s.Error != "":
		condition = failedCondition
	case s.NotVersion != "":
		condition = processedCondition
	}
	return strings.ReplaceAll(condition, "{began}", began)
}

// terms are the conditions that are asked only when rows are looked for: with an
// engine's own words for "unlike, or null" and "like".
func (s Selection) terms(version, unlike, pattern, like string) string {
	terms := []string{"true"}
	if s.NotVersion != "" {
		terms = append(terms, `d.version `+unlike+` `+version)
	}
	if s.Error != "" {
		terms = append(terms, `d.error `+like+` `+pattern)
	}
	if s.Where != "" {
		terms = append(terms, "(\n"+s.Where+"\n)") // a comment at its end hides nothing
	}
	return strings.Join(terms, " AND ")
}

// placeholder is what stands in the message of a group of errors for something that
// differs from row to row.
var placeholder = regexp.MustCompile(`<(n|hex|uuid|time|ip|email|id|text)>|\*+`)

// errorPattern turns Selection.Error into a pattern in which anything stands for any
// text; the parts between are quoted by quote.
func (s Selection) errorPattern(anything string, quote *strings.Replacer) string {
	var b strings.Builder
	b.WriteString(anything)
	at := 0
	for _, found := range placeholder.FindAllStringIndex(s.Error, -1) {
		b.WriteString(quote.Replace(s.Error[at:found[0]]))
		b.WriteString(anything)
		at = found[1]
	}
	b.WriteString(quote.Replace(s.Error[at:]))
	b.WriteString(anything)
	return b.String()
}

// Counts are the rows by state.
type Counts map[model.State]int64

// Total is the number of all rows.
func (c Counts) Total() int64 {
	var n int64
	for _, k := range c {
		n += k
	}
	return n
}

// Unprocessed is the number of rows that are still to be worked.
func (c Counts) Unprocessed() int64 {
	return c.Total() - c[model.Done] - c[model.Failed]
}

func (c Counts) add(other Counts) {
	for state, n := range other {
		c[state] += n
	}
}

// chunk is how many rows one transaction of a reprocess looks at or touches.
const chunk = 2000

// cleanKeys drops repeated keys and empty ones.
func cleanKeys(keys []string) []string {
	seen := map[string]bool{"": true}
	var clean []string
	for _, key := range keys {
		key = strings.TrimSpace(key)
		if !seen[key] {
			seen[key] = true
			clean = append(clean, key)
		}
	}
	return clean
}
