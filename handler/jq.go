package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/itchyny/gojq"

	"github.com/windrow-go/windrow/model"
)

const (
	// countedOutputs is how many outputs are counted for the error about them;
	// a program may have endlessly many.
	countedOutputs = 10
	// rowsPerCode is after how many rows the program is compiled afresh: gojq
	// keeps every regular expression that a program ever made, and one made
	// from data, as in test(.pattern), would grow memory with the table.
	rowsPerCode = 1024
)

// JQ handles a row by a jq program (the dialect of github.com/itchyny/gojq). Its
// input is the row's data, its one output the result; no output is null, several
// are an error. Every error of a program is permanent for its row: the same data
// would only meet it again.
//
// Numbers: one that is only passed on keeps every digit. Arithmetic is exact for
// integers of any size and by float64 for all others; what overflows becomes
// infinite, which is written as ±1.7976931348623157e+308, and NaN is written as
// null, as jq does. Keys of objects come out sorted.
//
// A program knows nothing but the row and its arguments: env, $ENV, input,
// inputs, import, include and debug are refused when the program is compiled;
// now is the machine's clock.
//
// An endless program is ended by the context or the timeout, which are looked at
// between jq's steps, so not within one call of a builtin function. The memory
// that a program takes can't be limited: [range(infinite)] takes all there is,
// and a value nested millions deep can end the process.
type JQ struct {
	program     string
	names       []string
	values      []any
	timeout     time.Duration
	fingerprint string

	code atomic.Pointer[gojq.Code]
	rows atomic.Uint64
}

// NewJQ compiles the program. An error says what is wrong with it and, for a
// syntax error, in which line and column.
func NewJQ(options JQOptions) (*JQ, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	names, values, err := options.variables()
	if err != nil {
		return nil, err
	}
	code, err := compile(options.Program, names)
	if err != nil {
		return nil, err
	}
	j := &JQ{
		program:     options.Program,
		names:       names,
		values:      values,
		timeout:     options.Timeout,
		fingerprint: options.fingerprint(),
	}
	j.code.Store(code)
	return j, nil
}

// Fingerprint identifies the program and its arguments.
func (j *JQ) Fingerprint() string { return j.fingerprint }

// Handle runs the program over the row's data and returns its output as a
// json.RawMessage.
func (j *JQ) Handle(ctx context.Context, row model.Dataset) (any, error) {
	data, err := decodeJSON(row.Data)
	if err != nil {
		return nil, model.Permanent(fmt.Errorf("jq: read the row's data: %w", err))
	}
	ctx, cancel := withDeadline(ctx, j.timeout)
	defer cancel()
	output, err := onlyOutput(j.current().RunWithContext(ctx, data, j.values...))
	if err == nil {
		return marshal(output)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, model.Permanent(fmt.Errorf("jq: %w", err))
}

// current returns the compiled program, compiled afresh now and then.
func (j *JQ) current() *gojq.Code {
	if j.rows.Add(1)%rowsPerCode == 0 {
		if code, err := compile(j.program, j.names); err == nil {
			j.code.Store(code)
		}
	}
	return j.code.Load()
}

// onlyOutput returns the one output, or nil if there is none.
func onlyOutput(outputs gojq.Iter) (any, error) {
	var only any
	count := 0
	for count <= countedOutputs {
		output, ok := outputs.Next()
		if !ok {
			break
		}
		if err, ok := output.(error); ok {
			if isHalt(err) {
				break
			}
			return nil, err
		}
		if count++; count == 1 {
			only = output
		}
	}
	switch {
	case count > countedOutputs:
		return nil, fmt.Errorf("the program has more than %d outputs for one row: wrap it in [...]", countedOutputs)
	case count > 1:
		return nil, fmt.Errorf("the program has %d outputs for one row: wrap it in [...]", count)
	}
	return only, nil
}

// isHalt tells whether err is the quiet end that halt asks for, and not one of
// halt_error.
func isHalt(err error) bool {
	var halt *gojq.HaltError
	return errors.As(err, &halt) && halt.Value() == nil && halt.ExitCode() == 0
}

func marshal(output any) (any, error) {
	if err := checkDepth(output, 0); err != nil {
		return nil, model.Permanent(fmt.Errorf("jq: %w", err))
	}
	text, err := gojq.Marshal(output)
	if err != nil {
		return nil, model.Permanent(fmt.Errorf("jq: write the result: %w", err))
	}
	return json.RawMessage(text), nil
}
