package doctor_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/internal/doctor"
	"github.com/windrow-go/windrow/internal/pgcluster"
	"github.com/windrow-go/windrow/internal/pgcluster/pgtest"
)

func TestAServerAsInstalledIsFine(t *testing.T) {
	j := newServer(t, pgcluster.Options{Fsync: true})
	for _, f := range j.report().findings {
		// The disk and the calendar are not the test's.
		if f.Severity != doctor.OK && f.Check != "free space" && f.Check != "server" {
			t.Errorf("%s %s: %s", f.Severity, f.Check, f.What)
		}
	}
}

// Whoever writes gets a transaction id.
func TestNothingIsWritten(t *testing.T) {
	j := newJob(t)
	j.grow(6000)
	ids := func() (id int64) {
		check(t, j.conn.QueryRow(t.Context(), `SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)`).Scan(&id))
		return id
	}
	// Another database's autovacuum may take one too.
	for range 5 {
		before := ids()
		j.report()
		if ids() == before {
			return
		}
	}
	t.Error("the doctor writes")
}

func (j *job) grow(rows int) {
	j.t.Helper()
	j.exec(`ALTER TABLE windrow.datasets SET (autovacuum_enabled = false)`,
		fmt.Sprintf(`INSERT INTO windrow.datasets (data) SELECT jsonb_build_object('n', n) FROM generate_series(1, %d) AS n`, rows))
}

// begin holds a transaction open from now on, and returns its session's process.
func (j *job) begin(name string, statements ...string) (pid uint32) {
	j.t.Helper()
	conn := connect(j.t, j.url+"&application_name="+name)
	for _, s := range append([]string{`BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT count(*) FROM windrow.job`}, statements...) {
		if _, err := conn.Exec(j.t.Context(), s); err != nil {
			j.t.Fatalf("%s: %v", s, err)
		}
	}
	return conn.PgConn().PID()
}

// pass begins so many transactions, one after the other.
func (j *job) pass(transactions int) {
	j.t.Helper()
	j.exec(fmt.Sprintf(`DO $$ BEGIN FOR i IN 1..%d LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$`, transactions))
}

func TestWhoHoldsAnOldSnapshotIsNamed(t *testing.T) {
	j := newServer(t, pgcluster.Options{Settings: map[string]string{"max_prepared_transactions": "5", "wal_level": "logical"}})
	j.report().fine("oldest snapshot", "replication slots")
	j.exec(`SELECT pg_create_logical_replication_slot('mirror', 'test_decoding')`)
	pid := j.begin("sleeper")
	j.report().fine("oldest snapshot")
	j.exec(`BEGIN`, `INSERT INTO windrow.job (name, value) VALUES ('a', 'b')`, `PREPARE TRANSACTION 'it''s forgotten'`)
	j.report().wants("oldest snapshot", doctor.Note, `"it's forgotten"`)
	j.pass(10_000)

	r := j.report()
	session := r.wants("oldest snapshot", doctor.Warning, fmt.Sprintf("session %d", pid), `"sleeper"`, "role postgres", "idle in transaction", "10,0", "pg_terminate_backend")
	prepared := r.wants("oldest snapshot", doctor.Warning, "prepared transaction", "ROLLBACK PREPARED 'it''s forgotten'")
	slot := r.wants("replication slots", doctor.Note, `"mirror"`, "inactive", "catalogues", "pg_drop_replication_slot")
	statement, _, _ := strings.Cut(prepared.Cure, "--")
	j.exec(statement)
	j.cure(session)
	j.cure(slot)
}

func TestASlotThatKeepsRowsOrWALIsWarnedOf(t *testing.T) {
	for name, tt := range map[string]struct {
		slot doctor.Slot
		want doctor.Severity
		says string
	}{
		"rows, nobody there":       {doctor.Slot{Rows: 3, Catalogue: -1}, doctor.Warning, "holds a snapshot, while 3 transactions"},
		"rows, fresh":              {doctor.Slot{Rows: 3, Catalogue: -1, Active: true}, doctor.OK, ""},
		"rows, behind":             {doctor.Slot{Rows: 20_000, Catalogue: -1, Active: true, PID: 7}, doctor.Warning, "pid 7"},
		"WAL":                      {doctor.Slot{Rows: -1, Catalogue: -1, Retained: 3 << 30, MostWAL: 1 << 30}, doctor.Warning, "3.0 GiB of WAL"},
		"WAL, as much as there is": {doctor.Slot{Rows: -1, Catalogue: -1, Retained: 3 << 30, MostWAL: 4 << 30}, doctor.OK, ""},
		"catalogue, in use":        {doctor.Slot{Rows: -1, Catalogue: 50_000, Active: true}, doctor.OK, ""},
	} {
		f := tt.slot.Finding()
		if f.Severity != tt.want || !strings.Contains(f.What, tt.says) {
			t.Errorf("%s: %s %q, want %s %q", name, f.Severity, f.What, tt.want, tt.says)
		}
	}
}

func TestDeadRowsAndEntriesAheadAreMeasured(t *testing.T) {
	j := newJob(t)
	j.grow(60_000)
	j.report().fine("dead rows", "head of the queue")
	j.begin("sleeper")
	j.exec(`UPDATE windrow.datasets SET checkouts = 1, available_at = now() + interval '1 minute'`,
		`UPDATE windrow.datasets SET is_processed = true`,
		`SELECT pg_stat_force_next_flush()`)
	r := j.report()
	r.wants("dead rows", doctor.Warning, "120,000 dead rows", "no vacuum yet", "VACUUM")
	r.wants("head of the queue", doctor.Note, "pages read", "VACUUM")
}

func TestWhoLocksTheTableIsNamed(t *testing.T) {
	for mode, words := range map[string][]string{
		"SHARE":            {"ShareLock"},
		"ACCESS EXCLUSIVE": {"AccessExclusiveLock"},
	} {
		t.Run(mode, func(t *testing.T) {
			j := newJob(t)
			j.report().fine("table locks")
			pid := j.begin("locker", `LOCK TABLE windrow.datasets IN `+mode+` MODE`)
			r := j.report()
			f := r.wants("table locks", doctor.Warning, append(words, fmt.Sprint(pid), `"locker"`, "idle in transaction")...)
			if mode == "ACCESS EXCLUSIVE" { // others could not be made, and say so
				r.wants("indexes", doctor.Warning, "locked exclusively")
			}
			j.cure(f)
		})
	}
}

func TestIndexesThatAreNotAsMigratedAreMended(t *testing.T) {
	j := newJob(t)
	j.only("indexes").fine("indexes")
	for name, tt := range map[string]struct {
		spoil    string
		severity doctor.Severity
		says     string
	}{
		"queue gone":   {`DROP INDEX windrow.unprocessed_datasets_idx`, doctor.Error, "unprocessed_datasets_idx is missing"},
		"failed gone":  {`DROP INDEX windrow.failed_datasets_idx`, doctor.Error, "failed_datasets_idx is missing"},
		"key gone":     {`ALTER TABLE windrow.datasets DROP CONSTRAINT datasets_pkey`, doctor.Error, "datasets_pkey is missing"},
		"invalid":      {`UPDATE pg_index SET indisvalid = false WHERE indexrelid = CAST('windrow.unprocessed_datasets_idx' AS regclass)`, doctor.Error, "invalid"},
		"not partial":  {`DROP INDEX windrow.unprocessed_datasets_idx; CREATE INDEX unprocessed_datasets_idx ON windrow.datasets (available_at, id)`, doctor.Warning, "not as the migrations make it"},
		"one too many": {`CREATE INDEX mine ON windrow.datasets (key)`, doctor.Note, "a further index"},
		"left over": {`CREATE INDEX failed_datasets_idx_ccnew ON windrow.datasets (id);
			UPDATE pg_index SET indisvalid = false WHERE indexrelid = CAST('windrow.failed_datasets_idx_ccnew' AS regclass)`, doctor.Warning, "left over"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &job{t, j.url, j.conn}
			j.exec(tt.spoil)
			j.cure(j.only("indexes").wants("indexes", tt.severity, tt.says))
		})
	}
}

func TestABloatedIndexIsRebuilt(t *testing.T) {
	j := newJob(t)
	j.grow(280_000)
	j.exec(`DROP INDEX windrow.unprocessed_datasets_idx`,
		`CREATE INDEX unprocessed_datasets_idx ON windrow.datasets (available_at, id) WITH (fillfactor = 10) WHERE NOT is_processed`,
		`ALTER INDEX windrow.unprocessed_datasets_idx RESET (fillfactor)`,
		`ANALYZE windrow.datasets`)
	j.cure(j.only("indexes").wants("indexes", doctor.Warning, "unprocessed_datasets_idx has", "280,000 rows", "REINDEX"))
}

func TestTheTableIsComparedWithTheMigrations(t *testing.T) {
	j := newJob(t)
	j.only("table").fine("table")
	for name, tt := range map[string]struct {
		spoil    string
		severity doctor.Severity
		says     string
	}{
		"no autovacuum": {`ALTER TABLE windrow.datasets SET (autovacuum_enabled = off)`, doctor.Warning, "autovacuum is turned off"},
		"full pages":    {`ALTER TABLE windrow.datasets RESET (fillfactor)`, doctor.Note, "fillfactor is 100, not 33"},
		"slow vacuum":   {`ALTER TABLE windrow.datasets SET (autovacuum_vacuum_scale_factor = 0.5)`, doctor.Note, "autovacuum_vacuum_scale_factor 0.5"},
		"no vacuum of indexes": {`ALTER TABLE windrow.datasets RESET (vacuum_index_cleanup, autovacuum_vacuum_cost_limit)`, doctor.Note,
			"autovacuum_vacuum_cost_limit not set, vacuum_index_cleanup not set"},
		"unlogged": {`ALTER TABLE windrow.datasets SET UNLOGGED`, doctor.Error, "unlogged"},
		"trigger": {`CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
			CREATE TRIGGER mine BEFORE UPDATE ON windrow.datasets FOR EACH ROW EXECUTE FUNCTION nothing()`, doctor.Note, "triggers: mine"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &job{t, j.url, j.conn}
			j.exec(tt.spoil)
			j.cure(j.only("table").wants("table", tt.severity, tt.says))
		})
	}
}

func TestStatisticsAndPlansAreLookedAt(t *testing.T) {
	j := newJob(t)
	j.grow(60_000)
	j.exec(`DROP INDEX windrow.unprocessed_datasets_idx`)
	r := j.report()
	stale := r.wants("statistics", doctor.Warning, "never counted", "ANALYZE")
	r.wants("plans", doctor.Warning, "peek fresh (Seq Scan)", `CREATE INDEX CONCURRENTLY unprocessed_datasets_idx ON "windrow".datasets (available_at, id) WHERE NOT is_processed;`)
	j.cure(stale)
	for range 6 {
		j.exec(`UPDATE windrow.datasets SET checkouts = checkouts + 1`)
	}
	j.exec(`SELECT pg_stat_force_next_flush()`)
	j.cure(j.report().wants("statistics", doctor.Warning, "stale", "rows changed"))
	j.cure(j.report().wants("plans", doctor.Warning, "peek fresh (Seq Scan)"))
}

func TestTheClocksAreCompared(t *testing.T) {
	j := newJob(t)
	for d, says := range map[time.Duration]string{-3 * time.Second: "3 s behind the server's", 5 * time.Second: "5 s ahead of the server's"} {
		report{t, doctor.Only(t.Context(), j.url, doctor.Options{Now: apart(d)}, "clock")}.wants("clock", doctor.Warning, says)
	}
	j.look(j.url, doctor.Options{Now: apart(300 * time.Millisecond)}).fine("clock")
}

func TestAPoolerInTransactionModeIsNoticed(t *testing.T) {
	j := newJob(t)
	j.report().fine("pooler")
	name := strings.TrimPrefix(must(url.Parse(j.url)).Path, "/")
	pooled := pgtest.Pooler(t, pgtest.Shared(t)).URL(name)
	r := j.look(pooled, doctor.Options{})
	r.wants("pooler", doctor.Note, "transaction mode", "LISTEN")
	r.wants("pooler", doctor.Error, "prepared statements", "default_query_exec_mode=exec")
	r.fine("indexes", "oldest snapshot", "privileges") // all the same

	r = j.look(pooled+"&default_query_exec_mode=exec", doctor.Options{})
	r.wants("pooler", doctor.Note, "transaction mode")
	for _, f := range r.findings {
		if f.Check == "pooler" && f.Severity == doctor.Error {
			t.Errorf("with exec: %s", f.What)
		}
	}
}

func TestAServerThatCanNotBeUsedIsAFinding(t *testing.T) {
	const secret = "s3cr3t-w0rd"
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	check(t, listener.Close())
	good := pgtest.Shared(t)
	for name, tt := range map[string]struct{ address, check, says string }{
		"nobody there":     {"postgres://me:" + secret + "@" + listener.Addr().String() + "/db?sslmode=disable", "connection", "pg_isready"},
		"no such database": {strings.Replace(good.URL("none"), "postgres@", "postgres:"+secret+"@", 1), "connection", "createdb"},
		"no such role":     {strings.Replace(good.URL("postgres"), "postgres@", "nobody:"+secret+"@", 1), "connection", "does not let this role in"},
		"no address":       {"postgres://me:" + secret + "@h:port/db", "connection", "--database"},
		"no tables":        {pgtest.Database(t), "schema", "windrow migrate up"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report{t, doctor.Postgres(t.Context(), tt.address, doctor.Options{})}
			r.wants(tt.check, doctor.Error, tt.says)
			text, err := json.Marshal(r.findings)
			check(t, err)
			if strings.Contains(string(text), secret) {
				t.Errorf("the password is in %s", text)
			}
		})
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
