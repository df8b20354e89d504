package handler

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// fingerprintBytes is how much of a file counts, besides its size: 16 MiB.
const fingerprintBytes = 16 << 20

// scriptExtensions are names of files that are programs even without a #! line.
// A file that is data stays out of the fingerprint: a command that appends to a
// log or a database named in its arguments would be another handler each time.
const scriptExtensions = ".awk .bash .cjs .clj .exs .fish .go .jar .jl .jq .js .ksh .lua .mjs .mts .nu .php .pl .ps1 " +
	".py .pyz .r .rb .rkt .scm .sed .sh .sql .tcl .ts .wasm .zsh "

// fingerprint gathers what makes a handler the one it is. Every part is written
// with its length, so that no two sequences of parts look the same.
type fingerprint struct{ sum hash.Hash }

func newFingerprint(kind string) fingerprint {
	f := fingerprint{sum: sha256.New()}
	f.add(kind)
	return f
}

func (f fingerprint) add(parts ...string) {
	for _, part := range parts {
		fmt.Fprintf(f.sum, "%d:%s", len(part), part)
	}
}

// addScript adds the contents of the file at path if it is a program in text:
// if it begins with #! or has the name of one. Whatever can't be read counts
// only by its name, which is among the arguments already.
func (f fingerprint) addScript(path string) {
	f.addFile(path, func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("#!")) || hasScriptName(path)
	})
}

// addFile adds the contents of the regular file at path if wanted says so of its
// first bytes.
func (f fingerprint) addFile(path string, wanted func(head []byte) bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return // the size is zero, too, for files of /proc, which can block
	}
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	head := make([]byte, 2)
	n, _ := io.ReadFull(file, head)
	if !wanted(head[:n]) {
		return
	}
	contents := sha256.New()
	contents.Write(head[:n])
	if _, err := io.CopyN(contents, file, fingerprintBytes-int64(n)); err != nil && err != io.EOF {
		return
	}
	f.add("contents", fmt.Sprint(info.Size()), string(contents.Sum(nil)))
}

// String returns the fingerprint: enough of the hash to tell handlers apart.
func (f fingerprint) String() string {
	return hex.EncodeToString(f.sum.Sum(nil))[:12]
}

func hasScriptName(path string) bool {
	extension := strings.ToLower(filepath.Ext(path))
	return extension != "" && strings.Contains(scriptExtensions, extension+" ")
}
