-- Takes no lock worth naming: one new table, nothing is rewritten.

-- primary: what belongs to no run and is kept in all its versions; the newest of a name counts
CREATE TABLE records (
  id         INTEGER PRIMARY KEY,
  tenant     TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  version    TEXT    NOT NULL,
  body       BLOB    NOT NULL,
  created_at INTEGER NOT NULL,
  by         TEXT    NOT NULL,
  gone       INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX records_by_name ON records (tenant, kind, name, id);
