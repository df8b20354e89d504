package intake

import (
	"fmt"
	"strings"
)

// sampleBytes is how much of a bad record is kept to be shown.
const sampleBytes = 4 << 10

// BadRecord is the error for a record that can't be read, or can't be held by the
// database.
type BadRecord struct {
	// File is the name of the file, as in [Record].
	File string
	// Line is where the record starts, as in [Record].
	Line int64
	// Column is the byte in the line, counted from 1, where the fault stands;
	// 0 if that is not known.
	Column int
	// Reason says what is wrong and, where that helps, what to do.
	Reason string
	// Raw is the beginning of the record as it stands in the file, at most
	// about 4 kB; nil where there is no such text.
	Raw []byte
	// Fatal tells that nothing can be read after this record.
	Fatal bool

	unit string // what Line counts, if not lines
}

// Error names the file, the place and the reason.
func (b *BadRecord) Error() string {
	var s strings.Builder
	s.WriteString(b.File)
	if b.Line > 0 {
		unit := b.unit
		if unit == "" {
			unit = "line"
		}
		fmt.Fprintf(&s, ", %s %d", unit, b.Line)
	}
	if b.Column > 0 {
		fmt.Fprintf(&s, ", column %d", b.Column)
	}
	return s.String() + ": " + b.Reason
}

// sample copies the beginning of raw.
func sample(raw []byte) []byte {
	return append([]byte(nil), raw[:min(len(raw), sampleBytes)]...)
}

// What a reader is told to do about a text that isn't UTF-8.
const (
	adviceLatin1 = "not valid UTF-8: if the file is in Latin-1, iconv -f LATIN1 -t UTF-8 makes it so"
	adviceUTF16  = "the file is in UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it"
)
