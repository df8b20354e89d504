package doctor_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/internal/doctor"
)

// login makes a role with these rights, and returns the job's URL for it.
func (j *job) login(role string, grants ...string) string {
	j.t.Helper()
	j.exec(`CREATE ROLE ` + role + ` LOGIN`)
	j.t.Cleanup(func() { j.exec(`DROP OWNED BY `+role, `DROP ROLE `+role) })
	for _, g := range grants {
		j.exec(g + ` TO ` + role)
	}
	u := must(url.Parse(j.url))
	u.User = url.User(role)
	return u.String()
}

// documented are the grants that docs/guarantees.md lists for a command, or for it
// and others.
func documented(t *testing.T, command string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guarantees.md"))
	check(t, err)
	grant := regexp.MustCompile("`(GRANT [^`]*)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.TrimSpace(cells[1]) != command && !strings.HasPrefix(cells[1], " "+command+", `") {
			continue
		}
		var grants []string
		for _, found := range grant.FindAllStringSubmatch(cells[2], -1) {
			grants = append(grants, found[1])
		}
		return grants
	}
	t.Fatalf("docs/guarantees.md has no row for %s", command)
	return nil
}

// split makes a grant for each object of each statement.
func split(grants []string) (single []string) {
	for _, g := range grants {
		rights, objects, _ := strings.Cut(g, " ON ")
		if strings.HasPrefix(objects, "SCHEMA") || strings.HasPrefix(objects, "ALL ") || strings.HasPrefix(objects, "SEQUENCE") {
			single = append(single, g)
			continue
		}
		for _, object := range strings.Split(objects, ", ") {
			for _, right := range strings.Split(strings.TrimPrefix(rights, "GRANT "), ", ") {
				single = append(single, "GRANT "+right+" ON "+object)
			}
		}
	}
	return single
}

// The doctor asks for just what the documentation lists, which checkout's tests hold
// to what the statements need; and what it says to grant is enough.
func TestMissingRightsAreThoseOfTheDocumentation(t *testing.T) {
	j := newJob(t)
	role := 0
	lacks := func(command string, grants []string) (doctor.Finding, bool) {
		role++
		name := fmt.Sprintf("doctor_role_%d", role)
		for _, f := range doctor.Only(t.Context(), j.login(name, grants...), doctor.Options{}, "privileges") {
			if f.Check == "privileges" && strings.HasSuffix(f.What, ": windrow "+command) {
				return f, true
			}
		}
		return doctor.Finding{}, false
	}
	for command, row := range map[string]string{
		"work": "`work`", "load": "`load`", "reprocess, runs cancel": "`reprocess`", "pause, resume": "`pause`",
		"status, show, errors, export":       "`status`",
		"work, with handlers that use marks": "`work`, with handlers that use marks",
	} {
		t.Run(command, func(t *testing.T) {
			grants := split(documented(t, row))
			if strings.Contains(command, "marks") { // besides those of work
				grants = append([]string{"GRANT USAGE ON SCHEMA windrow"}, grants...)
			}
			if f, missing := lacks(command, grants); missing {
				t.Errorf("with all grants: %s: %s", f.What, f.Cure)
			}
			for i, left := range grants {
				if _, missing := lacks(command, slices.Delete(slices.Clone(grants), i, i+1)); !missing {
					t.Errorf("without %q nothing is said", left)
				}
			}
		})
	}
}

func TestARoleWithNothingIsToldWhatToGrant(t *testing.T) {
	j := newJob(t)
	address := j.login("doctor_nothing")
	f := j.look(address, doctor.Options{}).wants("privileges", doctor.Error, "windrow work", `GRANT SELECT, UPDATE ON "windrow".datasets TO "doctor_nothing";`)
	for statement := range strings.Lines(f.Cure) {
		j.exec(statement)
	}
	r := j.look(address, doctor.Options{})
	for _, f := range r.findings {
		if f.Check == "privileges" && strings.HasSuffix(f.What, "windrow work") {
			t.Errorf("after the cure: %s", f.What)
		}
	}
	r.wants("privileges", doctor.Note, "windrow load")
}

func TestSettingsAreJudgedAsTheyHoldForTheRole(t *testing.T) {
	j := newJob(t)
	address := j.login("doctor_hasty", split(documented(t, "`work`"))...)
	j.exec(`ALTER ROLE doctor_hasty SET statement_timeout = '5s'`,
		`ALTER ROLE doctor_hasty SET lock_timeout = '100ms'`,
		`ALTER ROLE doctor_hasty SET default_transaction_isolation = 'serializable'`,
		`ALTER ROLE doctor_hasty SET default_transaction_read_only = on`,
		`ALTER ROLE doctor_hasty CONNECTION LIMIT 4`)
	r := j.look(address, doctor.Options{})
	readOnly := r.wants("read only", doctor.Error, "default_transaction_read_only", `ALTER ROLE "doctor_hasty" SET default_transaction_read_only = 'off';`)
	timeout := r.wants("settings", doctor.Warning, "statement_timeout = 5 s, set for role doctor_hasty")
	r.wants("settings", doctor.Note, "lock_timeout = 100 ms")
	r.wants("settings", doctor.Note, "default_transaction_isolation = serializable")
	r.wants("connections", doctor.Note, "the role's limit", "1 more worker", `ALTER ROLE "doctor_hasty" CONNECTION LIMIT -1;`)
	for _, f := range r.findings {
		if strings.Contains(f.What, "statement_timeout = 1") {
			t.Errorf("the doctor's own bound is taken for a setting: %s", f.What)
		}
	}
	j.exec(readOnly.Cure, timeout.Cure)
	r = j.look(address, doctor.Options{})
	r.fine("read only")
	for _, f := range r.findings {
		if strings.HasPrefix(f.What, "statement_timeout") {
			t.Errorf("after the cure: %s", f.What)
		}
	}
}

func TestUnsafeAndNarrowSettingsAreNamed(t *testing.T) {
	r := newJob(t).report() // on a server for tests
	r.wants("settings", doctor.Error, "fsync = off", "ALTER SYSTEM SET fsync = 'on'")
	r.wants("settings", doctor.Warning, "full_page_writes = off")
	j := newJob(t)
	r = j.look(j.url+"&synchronous_commit=off&enable_indexscan=off", doctor.Options{})
	r.wants("settings", doctor.Warning, "synchronous_commit = off, set by the address", "take synchronous_commit out of the address")
	r.wants("settings", doctor.Warning, "enable_indexscan = off")
}

func TestRowSecurityThatHidesRowsIsAnError(t *testing.T) {
	j := newJob(t)
	address := j.login("doctor_hidden", split(documented(t, "`work`"))...)
	look := func() report {
		return report{t, doctor.Only(t.Context(), address, doctor.Options{}, "row security")}
	}
	look().fine("row security")

	j.exec(`ALTER TABLE windrow.datasets ENABLE ROW LEVEL SECURITY`)
	look().wants("row security", doctor.Error, "there is no policy")
	j.only("row security").wants("row security", doctor.Note, "not for role postgres")

	j.exec(`CREATE POLICY odd ON windrow.datasets USING (id % 2 = 1)`)
	look().wants("row security", doctor.Error, "by odd", "never worked")

	j.exec(`CREATE POLICY everything ON windrow.datasets USING (true)`)
	look().wants("row security", doctor.Note, "shows all rows")
	j.exec(`CREATE POLICY strict ON windrow.datasets AS RESTRICTIVE USING (id > 3)`)
	f := look().wants("row security", doctor.Error, "strict", "DISABLE ROW LEVEL SECURITY")
	disable, _, _ := strings.Cut(f.Cure, "--")
	j.exec(disable)
	look().fine("row security")
}

// What a view hides from the role is said, and the other checks go on.
func TestALookingRoleGetsTheOtherFindings(t *testing.T) {
	j := newJob(t)
	address := j.login("doctor_looker", split(documented(t, "`status`"))...)
	j.grow(6000)
	j.begin("sleeper")
	j.pass(10_000)
	r := j.look(address, doctor.Options{})
	r.wants("oldest snapshot", doctor.Warning, `"sleeper"`, "hidden")
	r.wants("plans", doctor.Note, "can't be looked at by this role")
	r.wants("privileges", doctor.Warning, "windrow work")
	r.wants("oldest snapshot", doctor.Warning, "pg_cancel_backend")
	r.fine("indexes", "clock", "schema")
}
