-- Takes no lock worth naming: empty columns. Threads made before have their names in lists after
-- `moot db rebuild`.

-- DERIVED from the log. What a thread is called, and the index of its newest turn.
ALTER TABLE runs ADD COLUMN title TEXT;
ALTER TABLE runs ADD COLUMN turns INTEGER;
