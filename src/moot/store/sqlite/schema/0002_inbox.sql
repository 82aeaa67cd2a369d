-- Takes no lock worth naming: four new tables and an empty column, nothing is rewritten.

-- derived: what waits for a person, replaced per run by the host
CREATE TABLE inbox (
  n        INTEGER NOT NULL,
  item_id  TEXT NOT NULL,
  tenant   TEXT NOT NULL,
  run_id   TEXT NOT NULL,
  node_id  TEXT NOT NULL,
  kind     TEXT NOT NULL,
  question TEXT NOT NULL,
  actions  TEXT NOT NULL,
  asked_by TEXT NOT NULL,
  since    INTEGER NOT NULL,
  deadline INTEGER,
  PRIMARY KEY (n, item_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_by_tenant ON inbox (tenant, since, n, item_id);

-- primary: how often each inbox has changed, and the host's own secrets
CREATE TABLE inbox_revisions (tenant TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT;
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;

-- primary: a key may be good for one conversation only (who was asked to join it)
ALTER TABLE keys ADD COLUMN thread TEXT;

-- derived: turns that came with an id of their own, so that none is said twice
CREATE TABLE messages (
  n          INTEGER NOT NULL,
  message_id TEXT    NOT NULL,
  sequence   INTEGER NOT NULL,
  PRIMARY KEY (n, message_id)
) STRICT, WITHOUT ROWID;
