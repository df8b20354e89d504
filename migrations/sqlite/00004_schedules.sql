-- Regular and on-demand operations: their kinds, and their runs.

-- +goose Up
CREATE TABLE schedules (
    name       TEXT    NOT NULL PRIMARY KEY,
    rule       TEXT    NOT NULL, -- every 15m, cron 0 3 * * *, or once
    timezone   TEXT    NOT NULL, -- of a cron rule
    lock       TEXT,             -- of its runs one at a time has it; null: none
    timeout    REAL    NOT NULL, -- seconds; 0: none
    missed     TEXT    NOT NULL, -- what becomes of times that were missed
    command    TEXT,             -- a program and its arguments, as JSON,
    function   TEXT,             -- or a function of a program that embeds windrow
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000),
    paused_by  TEXT,
    paused_at  INTEGER,
    CONSTRAINT schedules_command_or_function CHECK ((command IS NULL) <> (function IS NULL)),
    CONSTRAINT schedules_missed_known CHECK (missed IN ('run-once', 'skip'))
) WITHOUT ROWID;

-- One row a run: waiting for its time, running, or what became of it. History stays
-- when its schedule is removed.
CREATE TABLE schedule_runs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    due_at       INTEGER NOT NULL,
    created_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000),
    started_at   INTEGER,
    finished_at  INTEGER,
    lease_until  INTEGER, -- until when it is safe from others
    on_demand    INTEGER NOT NULL,
    exit_status  INTEGER,
    schedule     TEXT    NOT NULL,
    state        TEXT    NOT NULL DEFAULT 'waiting',
    lock         TEXT,
    created_by   TEXT    NOT NULL,
    holder       TEXT,
    cancelled_by TEXT,    -- who asked for its end
    abandoned_by TEXT,    -- who found its holder gone
    error        TEXT,
    output       TEXT,    -- the end of it
    CONSTRAINT schedule_runs_state_known
        CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled', 'abandoned', 'skipped'))
);

-- One run for each kind and due time, ever.
CREATE UNIQUE INDEX schedule_runs_schedule_due_at_idx ON schedule_runs (schedule, due_at) WHERE NOT on_demand;

-- Of each kind at most one regular and one on-demand run wait.
CREATE UNIQUE INDEX waiting_schedule_runs_schedule_on_demand_idx
    ON schedule_runs (schedule, on_demand) WHERE state = 'waiting';

-- What comes due next.
CREATE INDEX waiting_schedule_runs_idx ON schedule_runs (due_at, id) WHERE state = 'waiting';

-- One run at a time has a lock.
CREATE UNIQUE INDEX running_schedule_runs_idx ON schedule_runs (lock) WHERE state = 'running';

-- History, and the last result.
CREATE INDEX finished_schedule_runs_idx ON schedule_runs (schedule, finished_at, id) WHERE finished_at IS NOT NULL;

-- For people: a line for each kind, with times as text, in UTC.
CREATE VIEW schedule_overview AS
SELECT
    s.name,
    s.rule,
    s.timezone,
    s.lock,
    datetime(s.paused_at / 1e6, 'unixepoch')          AS paused_at,
    datetime(next.due_at / 1e6, 'unixepoch')          AS next_at,
    datetime(asked.created_at / 1e6, 'unixepoch')     AS asked_at, -- somebody wants it now
    asked.created_by                                  AS asked_by,
    running.id                                        AS running_run,
    running.holder                                    AS running_on,
    datetime(running.started_at / 1e6, 'unixepoch')   AS running_since,
    last.id                                           AS last_run,
    last.state                                        AS last_state,
    last.on_demand                                    AS last_on_demand,
    datetime(last.started_at / 1e6, 'unixepoch')      AS last_started_at,
    datetime(last.finished_at / 1e6, 'unixepoch')     AS last_finished_at,
    (last.finished_at - last.started_at) / 1e6        AS last_duration, -- seconds
    last.exit_status                                  AS last_exit_status,
    last.error                                        AS last_error
FROM schedules AS s
LEFT JOIN schedule_runs AS next
    ON next.schedule = s.name AND next.state = 'waiting' AND next.on_demand = 0
LEFT JOIN schedule_runs AS asked
    ON asked.schedule = s.name AND asked.state = 'waiting' AND asked.on_demand = 1
LEFT JOIN schedule_runs AS running
    ON running.id = (
        SELECT min(r.id)
        FROM schedule_runs AS r
        WHERE r.state = 'running' AND r.schedule = s.name
    )
LEFT JOIN schedule_runs AS last
    ON last.id = (
        SELECT r.id
        FROM schedule_runs AS r
        WHERE r.schedule = s.name AND r.finished_at IS NOT NULL
        ORDER BY r.finished_at DESC, r.id DESC
        LIMIT 1
    );

-- +goose Down
-- Drops every schedule and the history of all runs.
DROP VIEW schedule_overview;
DROP TABLE schedule_runs;
DROP TABLE schedules;
