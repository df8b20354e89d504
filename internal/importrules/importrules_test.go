// Package importrules_test holds the project's rules on who may import whom, and on
// the size of files and functions.
package importrules_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/windrow-go/windrow/"

// rule binds the code, not the tests, of one top folder. Own packages are named
// without the module's path; a name covers the folders below it.
type rule struct {
	allowed   []string // own packages, no others; nil: any
	forbidden []string // packages, own or not
}

var rules = map[string]rule{
	"model":     {allowed: []string{}},
	"checkout":  {forbidden: []string{"processor", "handler", "intake"}},
	"processor": {allowed: []string{"model", "internal/jsonb"}, forbidden: []string{"gorm.io", "database/sql", "github.com/jackc/pgx"}},
	"handler":   {allowed: []string{"model", "internal"}},
	"intake":    {allowed: []string{"model", "internal"}},
	"schedule":  {allowed: []string{"model", "internal", "migrations"}},
}

const (
	mostFileLines     = 500
	mostTestFileLines = 800
	mostFunctionLines = 100
)

func TestTheProjectKeepsItsRules(t *testing.T) {
	seen := 0
	root := os.DirFS(filepath.Join("..", ".."))
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && isElsewhere(root, path) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		seen++
		for _, broken := range violations(t, path, string(source)) {
			t.Error(broken)
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Fatalf("%d files read: %v", seen, err)
	}
}

func TestViolationsAreFound(t *testing.T) {
	tests := map[string]struct {
		path, source string
		want         int
	}{
		"model imports gorm":              {"model/a.go", imports("gorm.io/gorm"), 0},
		"model imports ours":              {"model/a.go", imports(module + "internal/jsonb"), 1},
		"checkout imports model":          {"checkout/a.go", imports(module + "model"), 0},
		"checkout imports processor":      {"checkout/a.go", imports(module + "processor"), 1},
		"processor imports its two":       {"processor/a.go", imports(module+"model", module+"internal/jsonb"), 0},
		"processor imports another of us": {"processor/a.go", imports(module + "internal/txn"), 1},
		"processor imports pgx":           {"processor/a.go", imports("github.com/jackc/pgx/v5"), 1},
		"processor's test imports a lot":  {"processor/a_test.go", imports(module+"checkout", "database/sql"), 0},
		"handler imports intake":          {"handler/jq/a.go", imports(module + "intake"), 1},
		"a name's beginning is no name":   {"intake/a.go", imports(module + "modelling"), 1},
		"a test imports cmd":              {"bench/a_test.go", imports(module + "cmd/windrow"), 1},
		"cmd imports cmd":                 {"cmd/windrow/a.go", imports(module + "cmd/windrow/words"), 0},
		"a long file":                     {"web/a.go", imports() + strings.Repeat("\n", mostFileLines), 1},
		"a test file as long":             {"web/a_test.go", imports() + strings.Repeat("\n", mostFileLines), 0},
		"a long function":                 {"web/a.go", imports() + "func f() {" + strings.Repeat("\n", mostFunctionLines) + "}\n", 1},
	}
	for name, tt := range tests {
		if got := violations(t, tt.path, tt.source); len(got) != tt.want {
			t.Errorf("%s: violations %q, want %d", name, got, tt.want)
		}
	}
}

func imports(paths ...string) string {
	source := "package a\n"
	for _, path := range paths {
		source += "import _ " + strconv.Quote(path) + "\n"
	}
	return source
}

// isElsewhere: hidden folders, test data, and modules of their own.
func isElsewhere(root fs.FS, folder string) bool {
	name := filepath.Base(folder)
	_, err := fs.Stat(root, folder+"/go.mod")
	return err == nil || strings.HasPrefix(name, ".") || name == "testdata"
}

func violations(t *testing.T, path, source string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var broken []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !mayImport(path, imported) {
			broken = append(broken, fmt.Sprintf("%s must not import %s", path, imported))
		}
	}
	return append(broken, oversizes(files, file, path, source)...)
}

func mayImport(path, imported string) bool {
	folder, _, _ := strings.Cut(path, "/")
	own, isOwn := strings.CutPrefix(imported, module)
	if isOwn && within(own, "cmd") && folder != "cmd" {
		return false
	}
	if strings.HasSuffix(path, "_test.go") {
		return true
	}
	covers := func(name string) bool { return within(own, name) }
	r := rules[folder]
	if slices.ContainsFunc(r.forbidden, covers) {
		return false
	}
	return !isOwn || r.allowed == nil || within(own, folder) || slices.ContainsFunc(r.allowed, covers)
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func oversizes(files *token.FileSet, file *ast.File, path, source string) []string {
	var broken []string
	most := mostFileLines
	if strings.HasSuffix(path, "_test.go") {
		most = mostTestFileLines
	}
	if lines := strings.Count(source, "\n"); lines > most {
		broken = append(broken, fmt.Sprintf("%s has %d lines, more than %d", path, lines, most))
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := files.Position(function.End()).Line - files.Position(function.Pos()).Line + 1
		if lines > mostFunctionLines {
			broken = append(broken, fmt.Sprintf("%s: %s has %d lines, more than %d", path, function.Name.Name, lines, mostFunctionLines))
		}
	}
	return broken
}
