package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/libtnb/sqlite"

	"github.com/windrow-go/windrow/internal/database"
)

// sql runs a statement on the place's database, as a user might.
func (p *place) sql(statement string) {
	p.t.Helper()
	dialector := sqlite.Open("file:" + p.path("windrow.db") + "?_busy_timeout=10000")
	table := "datasets"
	if p.database != "" {
		dialector, table = postgres.Open(p.database), "windrow.datasets"
	}
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		p.t.Fatal(err)
	}
	defer database.Close(db)
	if err := db.Exec(strings.ReplaceAll(statement, "{datasets}", table)).Error; err != nil {
		p.t.Fatal(err)
	}
}

// verifyLine is some of what verify --json documents.
type verifyLine struct {
	OK       bool  `json:"ok"`
	Rows     int64 `json:"rows"`
	Offences int64 `json:"offences"`
	Checks   []struct {
		Check    string `json:"check"`
		Offences int64  `json:"offences"`
		Samples  []struct {
			ID     int64  `json:"id"`
			Reason string `json:"reason"`
		} `json:"samples"`
	} `json:"checks"`
	Counters []struct {
		Counter       string `json:"counter"`
		Kept, Counted int64
	} `json:"counters"`
	Mended   bool   `json:"mended"`
	Unmended string `json:"unmended"`
}

func (p *place) verifyJSON(code int, args ...string) (line verifyLine) {
	p.t.Helper()
	r := p.run(append([]string{"verify", "--json"}, args...)...)
	r.wants(code)
	if err := json.Unmarshal([]byte(r.stdout), &line); err != nil {
		p.t.Fatal(err)
	}
	return line
}

func TestVerifyTellsWhatIsWrong(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(20)
		p.run("work", "--jq", `if .n == 3 then error("no") else .n end`, "--max-attempts", "1", "--until-empty").wants(3)
		p.ok("verify").prints("ok        outcome", "ok        tallies", "20 rows, ", "nothing is wrong.")

		p.sql(`UPDATE {datasets} SET result = NULL WHERE id = 7`)
		p.sql(`UPDATE {datasets} SET attempts = 5 WHERE id > 8 AND id < 20`)
		bad := p.run("verify").wants(1)
		bad.prints("1 row     outcome", "row 7 is processed, but has neither a result nor an error", "look: windrow show --id 7",
			"11 rows   tries", "and 1 more", ": 12 faults, listed above.")
		if strings.Contains(bad.stderr, "windrow: ") {
			t.Errorf("besides what it has found, it says %q", bad.stderr)
		}
		line := p.verifyJSON(1)
		if line.OK || line.Rows != 20 || line.Offences != 12 || line.Mended {
			t.Errorf("%+v", line)
		}
		for _, c := range line.Checks {
			if c.Check == "outcome" && (c.Offences != 1 || len(c.Samples) != 1 || c.Samples[0].ID != 7 || c.Samples[0].Reason == "") {
				t.Errorf("%+v", c)
			}
		}
	})
}

func TestVerifyMendsTheTallies(t *testing.T) {
	onEachEngine(t, func(t *testing.T, p *place) {
		p.load(3)
		p.sql(`INSERT INTO {datasets} (data) VALUES ('{}')`)
		line := p.verifyJSON(0, "--no-mend")
		if !line.OK || line.Mended || line.Unmended == "" || len(line.Counters) != 4 || line.Counters[2].Kept != 3 || line.Counters[2].Counted != 4 {
			t.Errorf("%+v", line)
		}
		p.ok("verify", "--no-mend").prints("differ    tallies", "--no-mend forbids it", "rows: 3 by the tallies, 4 counted", "nothing is wrong")
		p.ok("verify").prints("mended    tallies", "now they agree")
		p.ok("verify").prints("ok        tallies")
	})
}
