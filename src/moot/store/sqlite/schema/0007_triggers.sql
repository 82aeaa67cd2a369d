-- Takes no lock worth naming: two new tables, one empty column and an index over no rows.

-- derived: the standing agent whose work a run is
ALTER TABLE runs ADD COLUMN member TEXT;
CREATE INDEX runs_member ON runs (member, created_at, n) WHERE member IS NOT NULL;

-- primary: small states that change often, of which only the present counts
CREATE TABLE ledgers (
  tenant   TEXT    NOT NULL,
  kind     TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  revision INTEGER NOT NULL,
  body     BLOB    NOT NULL,
  due_at   INTEGER,
  PRIMARY KEY (tenant, kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledgers_due ON ledgers (kind, due_at) WHERE due_at IS NOT NULL;

-- primary: what is to be handed over once, into a run or out to a receiver
CREATE TABLE deliveries (
  id           INTEGER PRIMARY KEY,
  tenant       TEXT    NOT NULL,
  subscription TEXT    NOT NULL,
  key          TEXT    NOT NULL,
  delivery_id  TEXT    NOT NULL,
  source       TEXT    NOT NULL,
  state        TEXT    NOT NULL,
  received_at  INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  revision     INTEGER NOT NULL,
  due_at       INTEGER,
  run_id       TEXT,
  member       TEXT,
  subject      TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  attempts     TEXT    NOT NULL,
  body         BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX deliveries_key ON deliveries (tenant, subscription, key);
CREATE INDEX deliveries_id ON deliveries (delivery_id);
CREATE INDEX deliveries_newest ON deliveries (tenant, received_at, id);
CREATE INDEX deliveries_of ON deliveries (tenant, subscription, received_at, id);
CREATE INDEX deliveries_state ON deliveries (tenant, state, received_at, id);
CREATE INDEX deliveries_run ON deliveries (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_old ON deliveries (updated_at) WHERE due_at IS NULL;
