package intake

import (
	"bytes"
	"errors"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// jsonlDecoder gives the value on each line that isn't blank.
type jsonlDecoder struct {
	in    *input
	lines lineReader
}

func (d *jsonlDecoder) next(dst []byte) ([]byte, int64, error) {
	for {
		line, err := d.lines.next()
		if err != nil {
			return nil, 0, err
		}
		if len(bytes.Trim(line, " \t\r")) == 0 {
			continue
		}
		if err := jsonb.Check(line); err != nil {
			return nil, 0, d.bad(line, err)
		}
		return jsonb.AppendCompact(dst, line), d.lines.number, nil
	}
}

func (d *jsonlDecoder) bad(line []byte, err error) error {
	bad := d.lines.bad(line, err.Error())
	var fault *jsonb.Error
	if !errors.As(err, &fault) {
		return bad
	}
	bad.Column = fault.Offset + 1
	bad.Reason = fault.What + ": " + fault.Reason
	if d.lines.number == 1 && fault.Offset == len(line) {
		bad.Reason += "; a value must stand on one line: jq -c . FILE puts it so"
	}
	return bad
}

func (d *jsonlDecoder) close() error { return d.in.close() }
