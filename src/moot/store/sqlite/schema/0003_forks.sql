-- Takes no lock worth naming: empty columns and an index over none of the rows there are. Forks made
-- before are listed as such after `moot db rebuild`.

-- DERIVED from the log. The run this one was made from, where, how and why.
ALTER TABLE runs ADD COLUMN fork_of   TEXT;
ALTER TABLE runs ADD COLUMN fork_seq  INTEGER;
ALTER TABLE runs ADD COLUMN fork_mode TEXT;
ALTER TABLE runs ADD COLUMN fork_note TEXT;

CREATE INDEX runs_fork ON runs (tenant, fork_of, created_at) WHERE fork_of IS NOT NULL;
