-- Who works on the job, how far it has come without counting, and the former results
-- of rows that were put back.

-- +goose Up
-- One row a worker's start. A worker writes its own row, every five seconds while it
-- has work; rows of workers that are gone are forgotten after a day.
CREATE TABLE workers (
    holder      TEXT    NOT NULL PRIMARY KEY,
    host        TEXT    NOT NULL,
    pid         INTEGER NOT NULL,
    program     TEXT    NOT NULL, -- version of windrow
    version     TEXT    NOT NULL, -- of the handler
    slots       INTEGER NOT NULL,
    lease       REAL    NOT NULL, -- seconds
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    expected_by INTEGER NOT NULL, -- it is gone if it has not been seen again by then
    stopped_at  INTEGER,          -- it said that it ends
    in_flight   INTEGER NOT NULL,
    done        INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    retried     INTEGER NOT NULL,
    released    INTEGER NOT NULL,
    lost        INTEGER NOT NULL,
    conflicts   INTEGER NOT NULL,
    rate        REAL    NOT NULL, -- rows a second, over the last minute
    trouble     TEXT    NOT NULL  -- why it is slowed down
) WITHOUT ROWID;

-- How many rows stand processed: the sum over all rows here. Whoever changes that
-- adds a row of his own in the same transaction. A worker sums its own older rows up
-- now and then.
CREATE TABLE tallies (
    writer TEXT    NOT NULL, -- a holder, a run, or what the row was made for
    at     INTEGER NOT NULL, -- 0: summed up
    done   INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    -- Corrections of what loads tell: rows that came or went otherwise, and the ids
    -- that they take up.
    added  INTEGER NOT NULL DEFAULT 0,
    ids    INTEGER NOT NULL DEFAULT 0
);

INSERT INTO tallies (writer, at, done, failed)
SELECT 'migration', 0, count(*) FILTER (WHERE error IS NULL), count(*) FILTER (WHERE error IS NOT NULL)
FROM datasets
WHERE is_processed;

-- Those that have ended before are done; the others were cut off by a program that
-- could not go on with them.
ALTER TABLE runs ADD COLUMN state        TEXT    NOT NULL DEFAULT 'done'; -- running, done, cancelled
ALTER TABLE runs ADD COLUMN position     INTEGER NOT NULL DEFAULT -9223372036854775808; -- rows up to this id have been looked at
ALTER TABLE runs ADD COLUMN seen_at      INTEGER NOT NULL DEFAULT 0; -- of the command that puts rows back
ALTER TABLE runs ADD COLUMN keep_history INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN restored     INTEGER NOT NULL DEFAULT 0; -- put back as they were, by a cancel

-- Former outcomes of rows that were put back by a run that keeps them.
CREATE TABLE history (
    id           INTEGER NOT NULL,
    round        INTEGER NOT NULL, -- the one that ended with it
    run_id       INTEGER NOT NULL, -- the run that put the row back after it
    processed_at INTEGER,
    version      TEXT,
    error        TEXT,
    result       TEXT,
    PRIMARY KEY (id, round)
) WITHOUT ROWID;
CREATE INDEX history_run_idx ON history (run_id, id);

-- +goose Down
-- Drops all former outcomes.
DROP TABLE history;
ALTER TABLE runs DROP COLUMN state;
ALTER TABLE runs DROP COLUMN position;
ALTER TABLE runs DROP COLUMN seen_at;
ALTER TABLE runs DROP COLUMN keep_history;
ALTER TABLE runs DROP COLUMN restored;
DROP TABLE tallies;
DROP TABLE workers;
