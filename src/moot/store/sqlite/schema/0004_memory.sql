-- Takes no lock worth naming: two new tables, nothing is rewritten.

-- primary: what runs remember, as a journal; each row is a version of an entry, or its end.
-- `superseded` is the revision of the next version, so that what was so at a revision is found
-- without looking at what came later.
CREATE TABLE memory (
  n          INTEGER PRIMARY KEY,
  tenant     TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  scope      TEXT    NOT NULL,
  memory_id  TEXT    NOT NULL,
  content    TEXT,
  tags       TEXT    NOT NULL, -- JSON
  run_id     TEXT    NOT NULL,
  sequence   INTEGER NOT NULL,
  root       TEXT    NOT NULL,
  ancestors  TEXT    NOT NULL, -- JSON
  agent_id   TEXT,
  write_id   TEXT,
  written_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  erases     INTEGER NOT NULL,
  forgotten  INTEGER NOT NULL,
  superseded INTEGER
) STRICT;

CREATE UNIQUE INDEX memory_revision ON memory (tenant, revision);
CREATE UNIQUE INDEX memory_write    ON memory (tenant, write_id) WHERE write_id IS NOT NULL;
CREATE INDEX memory_version ON memory (tenant, scope, memory_id, revision);
CREATE INDEX memory_newest  ON memory (tenant, scope, created_at, revision);
CREATE INDEX memory_current ON memory (tenant, scope, created_at, revision)
  WHERE superseded IS NULL AND content IS NOT NULL;
CREATE INDEX memory_family  ON memory (tenant, scope, root, revision);
CREATE INDEX memory_lost    ON memory (tenant, scope, revision) WHERE forgotten = 1;

-- primary: the tags of each version that has any
CREATE TABLE memory_tags (
  tenant     TEXT    NOT NULL,
  scope      TEXT    NOT NULL,
  tag        TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  revision   INTEGER NOT NULL,
  PRIMARY KEY (tenant, scope, tag, created_at, revision)
) STRICT, WITHOUT ROWID;
