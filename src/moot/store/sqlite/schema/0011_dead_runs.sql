-- Takes no lock worth naming: an empty column. Runs that ended before are listed after
-- `moot db rebuild`.

-- DERIVED from the log. How often a node was tried before its run was given up.
ALTER TABLE runs ADD COLUMN dead_after INTEGER;
CREATE INDEX runs_dead ON runs (tenant, created_at, n) WHERE dead_after IS NOT NULL;
