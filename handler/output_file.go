package handler

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"gorm.io/gorm"

	"github.com/windrow-go/windrow/model"
)

// OutputFile is a file that a handler makes for a row, safely: it is written under a
// temporary name, and renamed in the transaction that stores the row's outcome. So
// under its own name it is whole, it is there when the row is done, and a worker
// that has lost the row can't replace it. (If the process dies between the renaming
// and the COMMIT the file is there and the row is worked again, which makes the same
// file anew.) Temporary files that a killed process leaves are called
// .windrow-*.tmp; delete them while no worker runs.
type OutputFile struct {
	temporary, final string
}

// NewOutputFile returns the file of a row in the directory dir. Its name is the
// row's key, with %XX for what a file name can't have (and for a dot that it begins
// with), or row-ID if it has none. Nothing is made yet.
func NewOutputFile(dir string, row model.Dataset) OutputFile {
	name := fmt.Sprintf(".windrow-%d-%d-%d.tmp", row.ID, row.Attempts, os.Getpid())
	return OutputFile{
		temporary: filepath.Join(dir, name),
		final:     filepath.Join(dir, fileName(row)),
	}
}

func checkOutputDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("output directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("output directory: %s is not a directory", dir)
	}
	return nil
}

// ofID is a name that rows without a key have.
var ofID = regexp.MustCompile(`^row-[0-9]+$`)

func fileName(row model.Dataset) string {
	if row.Key == nil {
		return "row-" + strconv.FormatInt(row.ID, 10)
	}
	name := url.PathEscape(*row.Key)
	if name == "" || name[0] == '.' || ofID.MatchString(name) {
		if name == "" {
			return "%"
		}
		return fmt.Sprintf("%%%02X%s", name[0], name[1:])
	}
	return name
}

// Path is where to write.
func (o OutputFile) Path() string { return o.temporary }

// Answer returns the answer that renames the file if one was written, and is
// result.
func (o OutputFile) Answer(result any) (model.Answer, error) {
	answer := model.Answer{Result: result}
	file, err := os.OpenFile(o.temporary, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return answer, nil
	}
	if err != nil {
		return answer, fmt.Errorf("output file: %w", err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil { // before its name says that it is whole
		return answer, fmt.Errorf("output file: %w", err)
	}
	answer.Discard = o.Remove
	answer.Effect = func(*gorm.DB) error { return o.rename() }
	return answer, nil
}

// rename may be done again after a COMMIT that failed.
func (o OutputFile) rename() error {
	err := os.Rename(o.temporary, o.final)
	if os.IsNotExist(err) {
		if _, done := os.Stat(o.final); done == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("output file: %w", err)
	}
	dir, err := os.Open(filepath.Dir(o.final))
	if err != nil {
		return fmt.Errorf("output file: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("output file: %w", err)
	}
	return nil
}

// Remove removes what was written.
func (o OutputFile) Remove() { _ = os.Remove(o.temporary) }
