package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
)

// lookAtFileIndexes compares the table's indexes with those of the migrations.
func lookAtFileIndexes(ctx context.Context, f *file) ([]Finding, error) {
	type found struct {
		Name string
		SQL  *string
	}
	var list []found
	err := f.read(ctx, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'datasets'`).Scan(&list).Error
	})
	if err != nil {
		return nil, err
	}
	there := map[string]string{}
	for _, i := range list {
		if i.SQL != nil {
			there[i.Name] = strings.Join(strings.Fields(*i.SQL), " ")
		}
	}
	want := map[string]string{
		"unprocessed_datasets_idx": "CREATE INDEX unprocessed_datasets_idx ON datasets (available_at, id) WHERE NOT is_processed",
		"failed_datasets_idx":      "CREATE INDEX failed_datasets_idx ON datasets (id) WHERE is_processed AND error IS NOT NULL",
	}
	var findings []Finding
	for _, name := range []string{"unprocessed_datasets_idx", "failed_datasets_idx"} {
		have, ok := there[name]
		delete(there, name)
		mend := func(statement string) string {
			return fmt.Sprintf("sqlite3 %s %s", shellQuoted(f.path), shellQuoted(statement))
		}
		switch {
		case !ok:
			findings = append(findings, Finding{Severity: Error, What: "the index " + name + " is missing",
				Why: "what goes by it reads the whole table instead", Cure: mend(want[name])})
		case have != want[name]:
			findings = append(findings, Finding{Severity: Warning, What: "the index " + name + " is not as the migrations make it: " + have,
				Why: "what goes by it may read the whole table instead", Cure: mend("DROP INDEX " + name + "; " + want[name])})
		}
	}
	for name := range there {
		findings = append(findings, Finding{Severity: Note, What: "a further index stands on the table: " + name,
			Why:  "check-out and check-in write into every index of the table",
			Cure: fmt.Sprintf("sqlite3 %s %s  # if it can be done without", shellQuoted(f.path), shellQuoted(`DROP INDEX "`+name+`"`))})
	}
	return orFine(findings, "as the migrations make them"), nil
}

// leastEmpty is a size below which empty pages are not worth a word.
const leastEmpty = 64 << 20

// lookAtEmptyPages: those are used again, but stay in the file.
func lookAtEmptyPages(ctx context.Context, f *file) ([]Finding, error) {
	var pages, empty int64
	err := f.read(ctx, func(tx *gorm.DB) error {
		if err := tx.Raw(`PRAGMA page_count`).Scan(&pages).Error; err != nil {
			return err
		}
		return tx.Raw(`PRAGMA freelist_count`).Scan(&empty).Error
	})
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%s of %s are empty pages", size(empty*f.header.pageSize), size(pages*f.header.pageSize))
	if empty*f.header.pageSize < leastEmpty || empty < pages/2 {
		return fine(text), nil
	}
	return []Finding{{Severity: Note, What: text, Why: "they are used again for new rows; until then they take room on the disk",
		Cure: fmt.Sprintf("sqlite3 %s VACUUM  # while nothing runs; it takes as much room once more", shellQuoted(f.path))}}, nil
}

// integrityTime bounds the look at the file's pages, which takes longer the larger
// the file is.
const integrityTime = time.Second

func lookAtIntegrity(ctx context.Context, f *file) ([]Finding, error) {
	limited, cancel := context.WithTimeout(ctx, integrityTime)
	defer cancel()
	var faults []string
	err := f.read(limited, func(tx *gorm.DB) error {
		return tx.Raw(`PRAGMA quick_check(10)`).Scan(&faults).Error
	})
	whole := fmt.Sprintf("sqlite3 %s 'PRAGMA quick_check'", shellQuoted(f.path))
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return []Finding{{Severity: Note, What: "the file is too large to be checked within " + spell(integrityTime) + "; no fault was found so far",
			Why: "damage elsewhere in it is not known", Cure: whole + "  # takes minutes for a large file"}}, nil
	case err != nil && isDamage(err), err == nil && (len(faults) != 1 || faults[0] != "ok"):
		what := "the file is damaged"
		if len(faults) > 0 {
			what += ": " + strings.Join(strings.Fields(strings.Join(faults, "; ")), " ")
		}
		return []Finding{{Severity: Error, What: what, Why: "rows may be unreadable, or worked on wrongly; the damage spreads with every write",
			Cure: fmt.Sprintf("sqlite3 %s .recover | sqlite3 recovered.db  # while nothing runs; then name recovered.db with --database", shellQuoted(f.path))}}, nil
	case err != nil:
		return nil, err
	}
	return fine("a quick check found no damage"), nil
}

// isDamage tells SQLITE_CORRUPT and SQLITE_NOTADB.
func isDamage(err error) bool {
	var code interface{ Code() int }
	return errors.As(err, &code) && (code.Code()&0xff == 11 || code.Code()&0xff == 26)
}
