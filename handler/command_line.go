package handler

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// commandLine is what a process runs: a program with its arguments, or else a
// line for sh -c. kind says in errors what it is for.
type commandLine struct {
	kind  string
	args  []string
	shell string
}

func (c commandLine) validate() error {
	switch {
	case len(c.args) == 0 && strings.TrimSpace(c.shell) == "":
		return errors.New(c.kind + ": there is none to run")
	case len(c.args) > 0 && c.shell != "":
		return errors.New(c.kind + ": give either arguments or a line for the shell")
	}
	for i, argument := range c.argv() {
		if strings.ContainsRune(argument, 0) {
			return fmt.Errorf("%s: argument %d has a NUL character", c.kind, i)
		}
	}
	return nil
}

// argv is what is run, before fields are put in.
func (c commandLine) argv() []string {
	if c.shell != "" {
		return []string{"sh", "-c", c.shell}
	}
	return c.args
}

// program finds the program in PATH and returns an absolute path, so that it
// stays the same one.
func (c commandLine) program() (string, error) {
	name := c.argv()[0]
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.kind, err)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", c.kind, name, err)
	}
	return path, nil
}

// addTo adds the arguments, the program if it is given by a path or is a script,
// and every argument that is the name of a script. In a line for the shell, each
// word may be one.
func (c commandLine) addTo(f fingerprint, program string) {
	f.add(c.shell)
	f.add(c.args...)
	words := strings.FieldsFunc(c.shell, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`|&;()<>", r) })
	if len(c.args) > 0 {
		byPath := strings.ContainsRune(c.args[0], filepath.Separator)
		f.addFile(program, func(head []byte) bool { return byPath || string(head) == "#!" })
		words = c.args[1:]
	}
	for _, word := range words {
		f.addScript(word)
	}
}
