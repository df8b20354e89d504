package handler_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/windrow-go/windrow/handler"
)

// TestDocumentedChildrenWork runs the children that docs/handlers.md shows.
func TestDocumentedChildrenWork(t *testing.T) {
	page, err := os.ReadFile("../docs/handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Streams\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)\n```(sh|python|js|go)\n(.*?)```\n").FindAllStringSubmatch(section, -1)
	if len(blocks) != 5 {
		t.Fatalf("there are %d children", len(blocks))
	}
	for i, block := range blocks {
		language, program := block[1], block[2]
		t.Run(fmt.Sprint(language, i), func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, t.TempDir()+"/child."+language, program, 0o700)
			stream := newStream(t, handler.StreamOptions{Args: interpreter(t, language, program, path), Shared: language == "js"})
			workRows(t, stream)
		})
	}
}

// interpreter returns what runs the child at path.
func interpreter(t *testing.T, language, program, path string) []string {
	name := map[string]string{"sh": "sh", "python": "python3", "js": "node", "go": "go"}[language]
	if strings.Contains(program, "jq ") {
		if _, err := exec.LookPath("jq"); err != nil {
			t.Skip(err)
		}
	}
	if _, err := exec.LookPath(name); err != nil {
		t.Skip(err)
	}
	if language != "go" {
		return []string{name, path}
	}
	build := exec.Command("go", "build", "-o", path+".exe", path)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return []string{path + ".exe"}
}

func workRows(t *testing.T, stream *handler.Stream) {
	var slots sync.WaitGroup
	for slot := range int64(3) {
		slots.Go(func() {
			for i := range int64(50) {
				got, err := stream.Handle(t.Context(), numbered(3*i+slot, "{\"a\":\n\"\u2028é\"}"))
				if err != nil || len(text(got)) == 0 {
					t.Errorf("got %s, %v", text(got), err)
				}
			}
		})
	}
	slots.Wait()
}
