-- Who works on the job, how far it has come without counting, and the former results
-- of rows that were put back.

-- +goose Up
-- One row a worker's start. A worker writes its own row, every five seconds while it
-- has work; rows of workers that are gone are forgotten after a day.
CREATE TABLE "{{schema}}".workers (
    holder      text             NOT NULL,
    host        text             NOT NULL,
    pid         integer          NOT NULL,
    program     text             NOT NULL, -- version of windrow
    version     text             NOT NULL, -- of the handler
    slots       integer          NOT NULL,
    lease       double precision NOT NULL, -- seconds
    started_at  timestamptz      NOT NULL,
    seen_at     timestamptz      NOT NULL,
    expected_by timestamptz      NOT NULL, -- it is gone if it has not been seen again by then
    stopped_at  timestamptz,               -- it said that it ends
    in_flight   integer          NOT NULL,
    done        bigint           NOT NULL,
    failed      bigint           NOT NULL,
    retried     bigint           NOT NULL,
    released    bigint           NOT NULL,
    lost        bigint           NOT NULL,
    conflicts   bigint           NOT NULL,
    rate        double precision NOT NULL, -- rows a second, over the last minute
    trouble     text             NOT NULL, -- why it is slowed down
    CONSTRAINT workers_pkey PRIMARY KEY (holder)
) WITH (fillfactor = 50);

-- How many rows stand processed: the sum over all rows here. Whoever changes that
-- adds a row of his own in the same transaction, so that nobody waits for anybody and
-- no row gets long chains of dead versions while somebody holds an old snapshot. A
-- worker sums its own older rows up now and then.
CREATE TABLE "{{schema}}".tallies (
    writer text        NOT NULL, -- a holder, a run, or what the row was made for
    at     timestamptz NOT NULL, -- the epoch: summed up
    done   bigint      NOT NULL,
    failed bigint      NOT NULL,
    -- Corrections of what loads tell: rows that came or went otherwise, and the ids
    -- that they take up.
    added  bigint      NOT NULL DEFAULT 0,
    ids    bigint      NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.2, autovacuum_vacuum_threshold = 10000);

INSERT INTO "{{schema}}".tallies (writer, at, done, failed)
SELECT 'migration', 'epoch', count(*) FILTER (WHERE error IS NULL), count(*) FILTER (WHERE error IS NOT NULL)
FROM "{{schema}}".datasets
WHERE is_processed;

-- Those that have ended before are done; the others were cut off by a program that
-- could not go on with them.
ALTER TABLE "{{schema}}".runs
    ADD COLUMN state        text        NOT NULL DEFAULT 'done', -- running, done, cancelled
    ADD COLUMN position     bigint      NOT NULL DEFAULT -9223372036854775808, -- rows up to this id have been looked at
    ADD COLUMN seen_at      timestamptz NOT NULL DEFAULT 'epoch', -- of the command that puts rows back
    ADD COLUMN keep_history boolean     NOT NULL DEFAULT false,
    ADD COLUMN restored     bigint      NOT NULL DEFAULT 0;      -- put back as they were, by a cancel

-- Former outcomes of rows that were put back by a run that keeps them.
CREATE TABLE "{{schema}}".history (
    id           bigint  NOT NULL,
    round        integer NOT NULL, -- the one that ended with it
    run_id       bigint  NOT NULL, -- the run that put the row back after it
    processed_at timestamptz,
    version      text,
    error        text,
    result       jsonb,
    CONSTRAINT history_pkey PRIMARY KEY (id, round)
);
CREATE INDEX history_run_idx ON "{{schema}}".history (run_id, id);

-- +goose Down
-- Drops all former outcomes.
DROP TABLE "{{schema}}".history;
ALTER TABLE "{{schema}}".runs
    DROP COLUMN state,
    DROP COLUMN position,
    DROP COLUMN seen_at,
    DROP COLUMN keep_history,
    DROP COLUMN restored;
DROP TABLE "{{schema}}".tallies;
DROP TABLE "{{schema}}".workers;
