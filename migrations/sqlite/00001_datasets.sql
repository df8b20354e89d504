-- The table that is its own queue, and what belongs to it. Instants are
-- INTEGER microseconds since the epoch, UTC; the epoch itself is the sentinel.
-- JSON is TEXT, so that numbers keep their digits.

-- +goose Up
CREATE TABLE datasets (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    available_at   INTEGER NOT NULL DEFAULT 0,
    last_checkout  INTEGER NOT NULL DEFAULT 0,
    processed_at   INTEGER,
    run_id         INTEGER,
    redo_run       INTEGER,
    checkouts      INTEGER NOT NULL DEFAULT 0,
    attempts       INTEGER NOT NULL DEFAULT 0,
    losses         INTEGER NOT NULL DEFAULT 0,
    round          INTEGER NOT NULL DEFAULT 0,
    is_processed   INTEGER NOT NULL DEFAULT 0,
    checked_out_by TEXT,
    key            TEXT,
    version        TEXT,
    error          TEXT,
    last_error     TEXT,
    result         TEXT,
    data           TEXT NOT NULL,
    CONSTRAINT datasets_available_at_not_before_epoch CHECK (available_at >= 0)
);

CREATE INDEX unprocessed_datasets_idx ON datasets (available_at, id) WHERE NOT is_processed;
CREATE INDEX failed_datasets_idx ON datasets (id) WHERE is_processed AND error IS NOT NULL;

CREATE TABLE dataset_keys (
    key TEXT    NOT NULL PRIMARY KEY,
    id  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE loads (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    source      TEXT    NOT NULL,
    records     INTEGER NOT NULL DEFAULT 0,
    digest      TEXT    NOT NULL DEFAULT '',
    inserted    INTEGER NOT NULL DEFAULT 0,
    duplicates  INTEGER NOT NULL DEFAULT 0,
    changed     INTEGER NOT NULL DEFAULT 0,
    rejected    INTEGER NOT NULL DEFAULT 0,
    started_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000),
    finished_at INTEGER
);
CREATE INDEX loads_source_idx ON loads (source, id);

CREATE TABLE runs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    kind        TEXT    NOT NULL,
    selection   TEXT    NOT NULL,
    created_by  TEXT    NOT NULL,
    put_back    INTEGER NOT NULL DEFAULT 0,
    deferred    INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000),
    finished_at INTEGER
);

CREATE TABLE job (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO job (name, value)
VALUES ('uuid', lower(printf('%s-%s-4%s-%s%s-%s',
    hex(randomblob(4)), hex(randomblob(2)), substr(hex(randomblob(2)), 2),
    substr('89AB', 1 + (abs(random()) % 4), 1), substr(hex(randomblob(2)), 2),
    hex(randomblob(6)))));

-- +goose Down
-- Drops every row and result.
DROP TABLE job;
DROP TABLE runs;
DROP TABLE loads;
DROP TABLE dataset_keys;
DROP TABLE datasets;
