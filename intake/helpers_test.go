package intake_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/windrow-go/windrow/intake"
	"github.com/windrow-go/windrow/internal/jsonb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// got is what a source gave: records as "line data", bad records as "! " and the
// error with the file's folder taken out.
type got struct {
	rows []string
	bad  []*intake.BadRecord
	err  error // that ended it, if not io.EOF
}

// read reads content as a file of that name.
func read(t *testing.T, name, content string, opts intake.Options) got {
	t.Helper()
	return readFiles(t, opts, writeFile(t, name, content))
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFiles(t *testing.T, opts intake.Options, names ...string) got {
	t.Helper()
	s, err := intake.Open(names, strings.NewReader(""), opts)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, s)
}

func readStdin(t *testing.T, content string, opts intake.Options) got {
	t.Helper()
	s, err := intake.Open([]string{"-"}, strings.NewReader(content), opts)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, s)
}

func drain(t *testing.T, s *intake.Source) got {
	t.Helper()
	var g got
	for {
		r, err := s.Next()
		var bad *intake.BadRecord
		switch {
		case err == nil:
			if err := jsonb.Check(r.Data); err != nil {
				t.Errorf("line %d: not fit for jsonb: %v", r.Line, err)
			}
			g.rows = append(g.rows, position(r.Line)+string(r.Data))
			continue
		case errors.As(err, &bad):
			g.bad = append(g.bad, bad)
			g.rows = append(g.rows, "! "+place(bad)+bad.Reason)
			if !bad.Fatal {
				continue
			}
		case err != io.EOF:
			g.err = err
		}
		if _, again := s.Next(); again != err {
			t.Errorf("after %v came %v", err, again)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		return g
	}
}

func position(line int64) string { return strconv.FormatInt(line, 10) + " " }

func place(bad *intake.BadRecord) string {
	s := position(bad.Line)
	if bad.Column > 0 {
		s = strings.TrimSpace(s) + ":" + position(int64(bad.Column))
	}
	return s
}

// want compares what was read with the expected rows.
func (g got) want(t *testing.T, name string, rows ...string) {
	t.Helper()
	if g.err != nil {
		t.Errorf("%s: %v", name, g.err)
	}
	if !slices.Equal(g.rows, rows) {
		t.Errorf("%s: got\n  %s\nwant\n  %s", name, strings.Join(g.rows, "\n  "), strings.Join(rows, "\n  "))
	}
}

func writeTo(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
