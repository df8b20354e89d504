package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/windrow-go/windrow/bench"
	"github.com/windrow-go/windrow/intake"
)

// ErrNoResults is returned for a page that would be empty.
var ErrNoResults = errors.New("no results")

// Write writes benchmarks.md to dir, and the charts it refers to, benchmarks/*.svg.
// It returns the paths of the files, the page first. Each file appears whole or not
// at all, the page last; files of earlier pages that this one does not need stay.
func Write(results []bench.Result, dir string) (files []string, err error) {
	if len(results) == 0 {
		return nil, fmt.Errorf("write benchmarks: %w", ErrNoResults)
	}
	text, pictures, err := compose(results)
	if err != nil {
		return nil, fmt.Errorf("write benchmarks: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, chartFolder), 0o777); err != nil {
		return nil, err
	}
	files = []string{filepath.Join(dir, "benchmarks.md")}
	for _, c := range pictures {
		svg, err := c.svg()
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", c.file(), err)
		}
		path := filepath.Join(dir, chartFolder, c.file())
		if err := writeFile(path, svg); err != nil {
			return nil, err
		}
		files = append(files, path)
	}
	if err := writeFile(files[0], []byte(text)); err != nil {
		return nil, err
	}
	return files, nil
}

// compose makes the page's text and the charts it refers to.
func compose(results []bench.Result) (string, []chart, error) {
	p := &page{places: &places{}}
	all := groups(results, p.places)
	p.head(results)
	var pictures []chart
	for _, section := range partition(all, func(g group) string { return g.scenario }) {
		drawn, err := charts(section, p.places)
		if err != nil {
			return "", nil, err
		}
		p.section(section, drawn)
		pictures = append(pictures, drawn...)
	}
	return p.String()[:p.Len()-1], pictures, nil // one line end is enough
}

func writeFile(path string, content []byte) error {
	file, err := intake.CreateAtomic(path)
	if err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return errors.Join(err, file.Abort())
	}
	return file.Commit()
}
