-- How often a row was given back because its handler could not serve, the marks of
-- effects that must not happen twice, and what the handler has cost.

-- +goose Up
-- A column with a constant default takes no rewrite and no scan, however many rows
-- there are: the default is kept once, in the catalogue. The table is locked
-- exclusively for a moment, which waits for the transactions that use it to end;
-- those of workers are short.
-- Zero again in the next round.
ALTER TABLE "{{schema}}".datasets ADD COLUMN refunds integer NOT NULL DEFAULT 0;

-- One row a mark. Marks bind nothing: what they tell of has happened, whatever
-- becomes of its row. Those of former rounds stay, as a record.
CREATE TABLE "{{schema}}".marks (
    id        bigint      NOT NULL,
    round     integer     NOT NULL,
    name      text        NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT marks_pkey PRIMARY KEY (id, round, name)
);

-- One row a worker that has had costs; the sum is the job's.
CREATE TABLE "{{schema}}".costs (
    holder text             NOT NULL,
    cost   double precision NOT NULL,
    CONSTRAINT costs_pkey PRIMARY KEY (holder)
);

-- +goose Down
-- Drops every mark and cost. Dropping a column takes no rewrite either.
DROP TABLE "{{schema}}".costs;
DROP TABLE "{{schema}}".marks;
ALTER TABLE "{{schema}}".datasets DROP COLUMN refunds;
