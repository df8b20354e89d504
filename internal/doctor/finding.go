package doctor

import (
	"cmp"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

const (
	OK      Severity = "ok"      // looked at, and as it should be
	Note    Severity = "note"    // worth knowing; or a check that could not be made
	Warning Severity = "warning" // workers are slower for it, or will be, or something is at risk
	Error   Severity = "error"   // something does not work, or a promise does not hold
)

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Note, OK}, s) }

// Finding is one thing that a check has found.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check names the check, such as "oldest snapshot".
	Check string `json:"check"`
	What  string `json:"what"`
	// Why says what it means for workers; empty for OK.
	Why string `json:"why,omitempty"`
	// Cure mends it: SQL or a shell's command, ready to paste, in lines. What can't be
	// pasted stands in it as a comment, after "--" or "#".
	Cure string `json:"cure,omitempty"`
}

// Worst is the severity of the worst finding, OK if there is none.
func Worst(findings []Finding) Severity {
	worst := OK
	for _, f := range findings {
		if f.Severity.rank() < worst.rank() {
			worst = f.Severity
		}
	}
	return worst
}

// sorted puts the worst first, and keeps the order of the checks otherwise.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return findings
}

// fine is the only finding of a check that found nothing wrong.
func fine(what string) []Finding { return []Finding{{Severity: OK, What: what}} }

// orFine is findings, or that all is fine.
func orFine(findings []Finding, what string) []Finding {
	if len(findings) == 0 {
		return fine(what)
	}
	return findings
}
