-- How often a row was given back because its handler could not serve, the marks of
-- effects that must not happen twice, and what the handler has cost.

-- +goose Up
-- A column with a constant default takes no rewrite: a row that is too short for it
-- reads as the default.
-- Zero again in the next round.
ALTER TABLE datasets ADD COLUMN refunds INTEGER NOT NULL DEFAULT 0;

-- One row a mark. Marks bind nothing: what they tell of has happened, whatever
-- becomes of its row. Those of former rounds stay, as a record.
CREATE TABLE marks (
    id        INTEGER NOT NULL,
    round     INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    marked_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000),
    PRIMARY KEY (id, round, name)
) WITHOUT ROWID;

-- One row a worker that has had costs; the sum is the job's.
CREATE TABLE costs (
    holder TEXT NOT NULL PRIMARY KEY,
    cost   REAL NOT NULL
) WITHOUT ROWID;

-- +goose Down
-- Drops every mark and cost. Dropping the column rewrites the table.
DROP TABLE costs;
DROP TABLE marks;
ALTER TABLE datasets DROP COLUMN refunds;
