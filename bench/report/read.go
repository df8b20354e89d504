package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/windrow-go/windrow/bench"
)

// Read returns the results in all files below dir whose names end in .json or
// .jsonl, in the order of the names. A file holds results one after the other, each
// on a line as a rule, or arrays of them. Unknown fields are passed over. An error
// names the file and the line where the result begins that can't be read.
func Read(dir string) ([]bench.Result, error) {
	var results []bench.Result
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ending := filepath.Ext(path); entry.IsDir() || ending != ".json" && ending != ".jsonl" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		more, err := parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		results = append(results, more...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	return results, nil
}

// errNoScenario is of JSON that is something else than a result.
var errNoScenario = errors.New("no result: it has no scenario")

// parse returns the results in text; an error begins with the line.
func parse(text []byte) ([]bench.Result, error) {
	var results []bench.Result
	decoder := json.NewDecoder(bytes.NewReader(text))
	open := 0 // arrays
	for {
		start := valueStart(text, decoder.InputOffset())
		if start == len(text) && open == 0 {
			return results, nil
		}
		more, err := parseNext(decoder, text[start:], &open)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			line := 1 + bytes.Count(text[:start], []byte("\n"))
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		results = append(results, more...)
	}
}

// parseNext takes the next result, or steps over a bracket of an array.
func parseNext(decoder *json.Decoder, rest []byte, open *int) ([]bench.Result, error) {
	switch {
	case bytes.HasPrefix(rest, []byte("[")):
		*open++
		_, err := decoder.Token()
		return nil, err
	case bytes.HasPrefix(rest, []byte("]")):
		*open--
		_, err := decoder.Token()
		return nil, err
	}
	var result bench.Result
	if err := decoder.Decode(&result); err != nil {
		return nil, err
	}
	if result.Scenario == "" {
		return nil, errNoScenario
	}
	return []bench.Result{result}, nil
}

// valueStart is where the next value or bracket begins, at or after offset.
func valueStart(text []byte, offset int64) int {
	rest := bytes.TrimLeft(text[offset:], " \t\r\n,")
	return len(text) - len(rest)
}
