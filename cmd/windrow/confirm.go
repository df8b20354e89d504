package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks before something that can't be undone. Without a terminal it
// wants --yes.
func (a *app) confirm(what string, yes bool) error {
	if yes {
		return nil
	}
	if !isTerminal(a.stdin) {
		return usagef("%s There is no terminal to ask: add --yes", what)
	}
	fmt.Fprintf(a.stderr, "%s Go on? [y/N] ", what)
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &exitError{code: exitFailure, err: fmt.Errorf("nothing was done")}
}
