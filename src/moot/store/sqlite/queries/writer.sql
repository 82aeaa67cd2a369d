-- What the writer thread runs. {rows} is filled with question marks, never with values.

-- name: PUT_HEADS
INSERT INTO heads (n, tenant, run_id, next_sequence, hash)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
ON CONFLICT (n) DO UPDATE SET next_sequence = excluded.next_sequence, hash = excluded.hash

-- name: ADD_EVENTS
INSERT INTO events (n, sequence, hash, body)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL

-- name: PUT_RUNS
INSERT INTO runs (n, tenant, run_id, workflow_id, status, created_at, updated_at, ended_at,
                  parent_run, scope_id, agent_id, error_code, next_sequence,
                  fork_of, fork_seq, fork_mode, fork_note, member, title, turns, dead_after)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
ON CONFLICT (n) DO UPDATE SET
  workflow_id = excluded.workflow_id, status = excluded.status,
  created_at = excluded.created_at, updated_at = excluded.updated_at,
  ended_at = excluded.ended_at, parent_run = excluded.parent_run,
  scope_id = excluded.scope_id, agent_id = excluded.agent_id,
  error_code = excluded.error_code, next_sequence = excluded.next_sequence,
  fork_of = excluded.fork_of, fork_seq = excluded.fork_seq,
  fork_mode = excluded.fork_mode, fork_note = excluded.fork_note,
  member = excluded.member, title = excluded.title, turns = excluded.turns,
  dead_after = excluded.dead_after

-- name: PUT_WORK
INSERT INTO work (n, due_at)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
ON CONFLICT (n) DO UPDATE SET due_at = excluded.due_at

-- name: DROP_WORK
DELETE FROM work WHERE n IN (VALUES {rows})

-- name: PUT_SNAPSHOTS
INSERT INTO snapshots (n, fold_version, next_sequence, state)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
ON CONFLICT (n) DO UPDATE SET fold_version = excluded.fold_version,
  next_sequence = excluded.next_sequence, state = excluded.state

-- name: PUT_MESSAGES
INSERT INTO messages (n, message_id, sequence)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
ON CONFLICT (n, message_id) DO NOTHING

-- name: ADD_TEXTS
INSERT INTO text_queue (at, n, sequence, source)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL

-- name: PUT_EFFECTS
INSERT INTO effects (tenant, invocation_id, run_id, sequence, finished, day, tokens, money,
                     member)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
ON CONFLICT (tenant, run_id, invocation_id) DO UPDATE SET
  sequence = excluded.sequence, finished = excluded.finished, day = excluded.day,
  tokens = excluded.tokens, money = excluded.money, member = excluded.member
  WHERE excluded.sequence >= effects.sequence

-- name: ADD_RECEIPTS
INSERT INTO receipts (tenant, operation, key, digest, status, headers, body, created_at)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL

-- name: PUT_ARTIFACTS
INSERT INTO artifacts (tenant, run_id, artifact_id, body)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
ON CONFLICT (tenant, run_id, artifact_id) DO UPDATE SET body = excluded.body

-- name: SEAL
INSERT INTO sealed (tenant, run_id, name, value)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
ON CONFLICT (tenant, run_id, name) DO UPDATE SET value = excluded.value

-- name: FORGET_SEALED
DELETE FROM sealed WHERE (tenant, run_id, name) IN (VALUES {rows})

-- name: UNSEAL
DELETE FROM sealed WHERE (tenant, run_id) IN (VALUES {rows})

-- name: TAKEN_RECEIPTS
SELECT r.tenant, r.operation, r.key FROM json_each(?) AS asked
CROSS JOIN receipts AS r
  ON r.tenant = asked.value ->> 0 AND r.operation = asked.value ->> 1
  AND r.key = asked.value ->> 2

-- name: DROP_INBOX
DELETE FROM inbox WHERE n = ?

-- name: ADD_INBOX
INSERT INTO inbox (n, tenant, item_id, run_id, node_id, kind, question, actions, asked_by, since,
                   deadline)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: BUMP_INBOX
INSERT INTO inbox_revisions (tenant, revision) VALUES (?, 1)
ON CONFLICT (tenant) DO UPDATE SET revision = revision + 1

-- name: PUT_SECRET
INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING

-- name: SECRET
SELECT value FROM secrets WHERE name = ?

-- name: CLEAR_DERIVED
DELETE FROM inbox;
DELETE FROM messages;
DELETE FROM runs;
DELETE FROM work;
DELETE FROM snapshots;
DELETE FROM effects;
DELETE FROM text_queue;
DELETE FROM text_places;
INSERT INTO texts (texts) VALUES ('delete-all');

-- name: PUT_DEFINITION
INSERT INTO definitions (tenant, workflow_id, version, digest, body, created_at, source)
VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: DROP_DEFINITION
DELETE FROM definitions WHERE tenant = ? AND workflow_id = ? AND digest = ?

-- name: PUT_KEY
INSERT INTO keys (id, hash, tenant, name, scopes, speaks_as, created_at, admin, test, revoked_at,
                  expires_at, thread)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, tenant = excluded.tenant,
  name = excluded.name, scopes = excluded.scopes, speaks_as = excluded.speaks_as,
  created_at = excluded.created_at, admin = excluded.admin, test = excluded.test,
  revoked_at = excluded.revoked_at, expires_at = excluded.expires_at,
  thread = excluded.thread

-- name: KEY_HOLDER
SELECT id FROM keys WHERE hash = ?

-- name: REVOKE_KEY
UPDATE keys SET revoked_at = ifnull(revoked_at, :at)
WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant)

-- name: FORGET_RECEIPTS
DELETE FROM receipts WHERE id IN (
  SELECT id FROM receipts WHERE created_at < ? ORDER BY created_at LIMIT 1000
)

-- name: LAST_NUMBER
SELECT ifnull(max(n), 0) FROM heads

-- name: FIND_HEADS
SELECT h.run_id, h.n, h.tenant, h.next_sequence, h.hash, w.due_at
FROM json_each(?) AS asked
CROSS JOIN heads AS h ON h.run_id = asked.value
LEFT JOIN work AS w ON w.n = h.n
