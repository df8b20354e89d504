package handler

import (
	"bytes"
	"context"
	"fmt"
)

// output takes what a command writes, up to a limit. The first byte above it
// cancels the command.
type output struct {
	limit  int64
	cancel context.CancelCauseFunc
	kept   bytes.Buffer
	err    error
}

// Write keeps p, or fails for good if it is too much.
func (o *output) Write(p []byte) (int, error) {
	if o.err == nil && int64(o.kept.Len())+int64(len(p)) > o.limit {
		o.err = fmt.Errorf("the command's output is larger than %d bytes", o.limit)
		o.kept = bytes.Buffer{}
		o.cancel(o.err)
	}
	if o.err != nil {
		return 0, o.err
	}
	return o.kept.Write(p)
}
