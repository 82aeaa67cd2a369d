-- Rewrites the places of effects once; it locks for as long as that takes, a second for a million.

-- derived: an effect is looked up within its own run, so that no log can answer for another
CREATE TABLE effects_of_runs (
  tenant        TEXT    NOT NULL,
  run_id        TEXT    NOT NULL,
  invocation_id TEXT    NOT NULL,
  sequence      INTEGER NOT NULL,
  finished      INTEGER NOT NULL,
  day           INTEGER NOT NULL DEFAULT 0,
  tokens        INTEGER NOT NULL DEFAULT 0,
  money         INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, run_id, invocation_id)
) STRICT, WITHOUT ROWID;

INSERT INTO effects_of_runs
SELECT tenant, run_id, invocation_id, sequence, finished, day, tokens, money FROM effects;

DROP TABLE effects;
ALTER TABLE effects_of_runs RENAME TO effects;
CREATE INDEX effects_by_day ON effects (tenant, day, tokens, money) WHERE day > 0;
