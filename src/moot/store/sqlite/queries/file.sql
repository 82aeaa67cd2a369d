-- The file as a whole: how it is opened, its schema and its size.

-- name: WRITER_PRAGMAS
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -32000;
PRAGMA secure_delete = ON;

-- name: CREATE_LEDGER
CREATE TABLE schema_migrations (
  version  INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  checksum TEXT NOT NULL
) STRICT

-- name: HAS_TABLES
SELECT EXISTS (SELECT 1 FROM sqlite_schema)

-- name: HAS_LEDGER
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations')

-- name: APPLIED
SELECT version, checksum FROM schema_migrations ORDER BY version

-- name: REMEMBER
INSERT INTO schema_migrations VALUES (?, ?, ?)

-- name: COUNTS
SELECT (SELECT count(*) FROM heads), (SELECT ifnull(sum(next_sequence), 0) FROM heads),
       (SELECT count(*) FROM work), (SELECT count(*) FROM receipts),
       (SELECT max(version) FROM schema_migrations)

-- name: STATUSES
SELECT status, count(*) FROM runs GROUP BY status ORDER BY status
