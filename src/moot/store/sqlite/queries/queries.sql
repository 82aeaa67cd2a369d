-- Logs, runs, definitions, keys and what may be a repeat.

-- name: READ
SELECT body FROM events
WHERE n = (SELECT n FROM heads WHERE run_id = ? AND tenant = ?) AND sequence > ?
ORDER BY sequence LIMIT ?

-- name: HEAD
SELECT next_sequence FROM heads WHERE run_id = ? AND tenant = ?

-- name: SNAPSHOT
SELECT s.next_sequence, s.state FROM heads AS h CROSS JOIN snapshots AS s ON s.n = h.n
WHERE h.run_id = ? AND h.tenant = ? AND s.fold_version = ?

-- name: SEALED
SELECT name, value FROM sealed WHERE tenant = ? AND run_id = ?

-- name: ARTIFACT
SELECT body FROM artifacts WHERE tenant = ? AND run_id = ? AND artifact_id = ?

-- name: EFFECT
SELECT tenant, invocation_id, run_id, sequence, finished, day, tokens, money, member FROM effects
WHERE tenant = ? AND run_id = ? AND invocation_id = ?

-- name: SPENT
-- '0' is the character after '/', which separates a room from its tenant
SELECT coalesce(sum(tokens), 0), coalesce(sum(money), 0) FROM (
  SELECT tokens, money FROM effects WHERE tenant = :tenant AND day = :day AND day > 0
  UNION ALL
  SELECT tokens, money FROM effects
  WHERE tenant > :tenant || '/' AND tenant < :tenant || '0' AND day = :day AND day > 0
)

-- name: SPENT_BY
SELECT coalesce(sum(tokens), 0), coalesce(sum(money), 0)
FROM effects INDEXED BY effects_by_member
WHERE tenant = ? AND member = ? AND day BETWEEN ? AND ? AND day > 0 AND member IS NOT NULL

-- name: FIND_RUN
SELECT r.tenant, r.run_id, r.workflow_id, r.status, r.created_at, r.updated_at, r.ended_at,
       r.parent_run, r.scope_id, r.agent_id, r.error_code, r.next_sequence,
       r.fork_of, r.fork_seq, r.fork_mode, r.fork_note, r.member, r.title, r.turns,
       r.dead_after
FROM heads AS h CROSS JOIN runs AS r ON r.n = h.n WHERE h.run_id = ? AND h.tenant = ?

-- name: ACTIVE_RUN
SELECT run_id FROM runs WHERE tenant = ? AND scope_id = ? AND ended_at IS NULL
ORDER BY created_at DESC, n DESC LIMIT 1

-- name: WORK
SELECT h.tenant, h.run_id, w.due_at FROM work AS w CROSS JOIN heads AS h ON h.n = w.n
WHERE w.due_at <= ? ORDER BY w.due_at, w.n LIMIT ?

-- name: INBOX
SELECT tenant, item_id, run_id, node_id, kind, question, actions, asked_by, since, deadline
FROM inbox WHERE tenant = ? ORDER BY since, n, item_id LIMIT ?

-- name: INBOX_REVISION
SELECT revision FROM inbox_revisions WHERE tenant = ?

-- name: NEXT_WORK
SELECT min(due_at) FROM work

-- name: RUNS
SELECT tenant, run_id FROM heads ORDER BY n

-- name: definitions
SELECT tenant, workflow_id, version, digest, body, created_at, source FROM definitions

-- name: DEFINITION
{definitions}
WHERE tenant = ? AND workflow_id = ? AND source <> 'import' ORDER BY id DESC LIMIT 1

-- name: DEFINITION_BY_DIGEST
{definitions}
WHERE tenant = ? AND digest = ? ORDER BY id DESC LIMIT 1

-- name: DEFINED_ELSEWHERE
SELECT 1 FROM definitions WHERE workflow_id = ? AND tenant != ? AND source != 'import' LIMIT 1

-- name: DEFINITIONS
{definitions}
WHERE id IN (
  SELECT max(id) FROM definitions WHERE tenant = ? AND source <> 'import' GROUP BY workflow_id
)
ORDER BY workflow_id

-- name: keys
SELECT id, hash, tenant, name, scopes, speaks_as, created_at, admin, test, revoked_at, expires_at,
  thread
FROM keys

-- name: KEY_BY_HASH
{keys} WHERE hash = ?

-- name: KEYS
{keys} WHERE :tenant IS NULL OR tenant = :tenant ORDER BY created_at, id

-- name: RECEIPTS
-- by tenant, operation and key
SELECT r.tenant, r.operation, r.key, r.digest, r.status, r.headers, r.body, r.created_at
FROM (VALUES {rows}) AS asked CROSS JOIN receipts AS r
ON r.tenant = asked.column1 AND r.operation = asked.column2 AND r.key = asked.column3

-- name: MESSAGES
-- by tenant, run and message id
SELECT h.tenant, h.run_id, m.message_id, m.sequence
FROM (VALUES {rows}) AS asked
CROSS JOIN heads AS h ON h.run_id = asked.column2 AND h.tenant = asked.column1
CROSS JOIN messages AS m ON m.n = h.n AND m.message_id = asked.column3

-- Tallies of standing agents. Each reads a limited number of rows.

-- name: member_runs
-- a standing agent's newest runs; child runs are left out later, but count towards ``:most``
SELECT n, tenant, run_id, workflow_id, status, created_at, updated_at, ended_at, parent_run,
       scope_id, agent_id, error_code, next_sequence, fork_of, fork_seq, fork_mode, fork_note,
       member, title, turns, dead_after
FROM runs INDEXED BY runs_member WHERE member = :member AND tenant = :tenant
  AND created_at >= :since
ORDER BY created_at DESC, n DESC LIMIT :most

-- name: TALLY
SELECT workflow_id, created_at / 86400000, status, count(*) FROM ({member_runs})
WHERE parent_run IS NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3

-- name: NEWEST_RUNS
SELECT * FROM (
  SELECT row_number() OVER (PARTITION BY workflow_id ORDER BY created_at DESC, n DESC) AS place, *
  FROM ({member_runs}) WHERE parent_run IS NULL
) WHERE place = 1 ORDER BY workflow_id

-- name: ASKED_BY
SELECT asked.* FROM (
  SELECT row_number() OVER (ORDER BY since, n, item_id) AS number, n, tenant, item_id, run_id,
         node_id, kind, question, actions, asked_by, since, deadline
  FROM inbox WHERE tenant = :tenant ORDER BY since, n, item_id LIMIT :most
) AS asked CROSS JOIN runs AS r ON r.n = asked.n
WHERE r.member = :member ORDER BY asked.number
