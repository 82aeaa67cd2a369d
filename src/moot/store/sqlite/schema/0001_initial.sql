-- The first schema. Runs on an empty file: locks nothing that is in use.

-- PRIMARY. Where each log stands: its length and its last hash, so that a cut tail is found.
-- `n` counts the logs from 1 without gaps; it keeps the keys of all other tables short, and
-- lets new logs grow at the right edge of `events`.
CREATE TABLE heads (
  n             INTEGER PRIMARY KEY,
  tenant        TEXT    NOT NULL,
  run_id        TEXT    NOT NULL UNIQUE,
  next_sequence INTEGER NOT NULL,
  hash          BLOB    NOT NULL
) STRICT;

-- PRIMARY. The log: each event as its encoded bytes, chained by hash to the one before it.
CREATE TABLE events (
  n        INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  hash     BLOB    NOT NULL,
  body     BLOB    NOT NULL,
  PRIMARY KEY (n, sequence)
) STRICT, WITHOUT ROWID;

-- DERIVED from the log. What lists and look-ups need of a run.
CREATE TABLE runs (
  n             INTEGER PRIMARY KEY,
  tenant        TEXT    NOT NULL,
  run_id        TEXT    NOT NULL,
  workflow_id   TEXT    NOT NULL,
  status        TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  ended_at      INTEGER,
  parent_run    TEXT,
  scope_id      TEXT,
  agent_id      TEXT,
  error_code    TEXT,
  next_sequence INTEGER NOT NULL
) STRICT;

-- `n` is the last column of each of these by itself.
CREATE INDEX runs_newest   ON runs (tenant, created_at);
CREATE INDEX runs_status   ON runs (tenant, status, created_at);
CREATE INDEX runs_workflow ON runs (tenant, workflow_id, created_at);
CREATE INDEX runs_agent    ON runs (tenant, agent_id, created_at) WHERE agent_id IS NOT NULL;
CREATE INDEX runs_parent   ON runs (tenant, parent_run, created_at) WHERE parent_run IS NOT NULL;
CREATE INDEX runs_active   ON runs (tenant, scope_id, created_at)
  WHERE scope_id IS NOT NULL AND ended_at IS NULL;

-- DERIVED from the log. The runs the host owes something, and when.
CREATE TABLE work (
  n      INTEGER PRIMARY KEY,
  due_at INTEGER NOT NULL
) STRICT;

CREATE INDEX work_due ON work (due_at);

-- DERIVED from the log. The last cached fold of a run.
CREATE TABLE snapshots (
  n             INTEGER PRIMARY KEY,
  fold_version  INTEGER NOT NULL,
  next_sequence INTEGER NOT NULL,
  state         BLOB    NOT NULL
) STRICT;

-- DERIVED from the log. Where the end of an effect stands, else its start.
CREATE TABLE effects (
  tenant        TEXT    NOT NULL,
  invocation_id TEXT    NOT NULL,
  run_id        TEXT    NOT NULL,
  sequence      INTEGER NOT NULL,
  finished      INTEGER NOT NULL,
  PRIMARY KEY (tenant, invocation_id)
) STRICT, WITHOUT ROWID;

-- PRIMARY. Remembered answers to requests that carried an Idempotency-Key.
CREATE TABLE receipts (
  id         INTEGER PRIMARY KEY,
  tenant     TEXT    NOT NULL,
  operation  TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  digest     TEXT    NOT NULL,
  status     INTEGER NOT NULL,
  headers    BLOB    NOT NULL, -- JSON
  body       BLOB    NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (tenant, operation, key)
) STRICT;

CREATE INDEX receipts_age ON receipts (created_at);

-- PRIMARY. What runs left behind.
CREATE TABLE artifacts (
  tenant      TEXT NOT NULL,
  run_id      TEXT NOT NULL,
  artifact_id TEXT NOT NULL,
  body        BLOB NOT NULL,
  PRIMARY KEY (tenant, run_id, artifact_id)
) STRICT, WITHOUT ROWID;

-- PRIMARY. Values that must not stand in the log; forgotten when the run no longer needs them.
CREATE TABLE sealed (
  tenant TEXT NOT NULL,
  run_id TEXT NOT NULL,
  name   TEXT NOT NULL,
  value  BLOB NOT NULL,
  PRIMARY KEY (tenant, run_id, name)
) STRICT, WITHOUT ROWID;

-- PRIMARY. Registered workflows; the highest id of a workflow is the one in force.
CREATE TABLE definitions (
  id          INTEGER PRIMARY KEY,
  tenant      TEXT    NOT NULL,
  workflow_id TEXT    NOT NULL,
  version     TEXT    NOT NULL,
  digest      TEXT    NOT NULL,
  body        BLOB    NOT NULL,
  created_at  INTEGER NOT NULL,
  source      TEXT    NOT NULL
) STRICT;

CREATE INDEX definitions_workflow ON definitions (tenant, workflow_id);
CREATE INDEX definitions_digest   ON definitions (tenant, digest);

-- PRIMARY. API keys; only the hash of the secret is here.
CREATE TABLE keys (
  id         TEXT    PRIMARY KEY NOT NULL,
  hash       TEXT    NOT NULL UNIQUE,
  tenant     TEXT    NOT NULL,
  name       TEXT    NOT NULL,
  scopes     BLOB    NOT NULL, -- JSON
  speaks_as  BLOB    NOT NULL, -- JSON
  created_at INTEGER NOT NULL,
  admin      INTEGER NOT NULL,
  test       INTEGER NOT NULL,
  revoked_at INTEGER,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;
