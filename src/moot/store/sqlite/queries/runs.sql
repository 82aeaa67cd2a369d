-- One list for each filter whose index the query walks; other filters are checked row by row.

-- name: columns
SELECT r.n, r.tenant, r.run_id, r.workflow_id, r.status, r.created_at, r.updated_at, r.ended_at,
       r.parent_run, r.scope_id, r.agent_id, r.error_code, r.next_sequence,
       r.fork_of, r.fork_seq, r.fork_mode, r.fork_note, r.member, r.title, r.turns,
       r.dead_after

-- name: filters
AND r.tenant = :tenant
  AND (:workflow IS NULL OR r.workflow_id = :workflow)
  AND (:agent IS NULL OR r.agent_id = :agent)
  AND (:parent IS NULL OR r.parent_run = :parent)
  AND (:fork IS NULL OR r.fork_of = :fork)
  AND (:member IS NULL OR r.member = :member)
  AND (:statuses IS NULL OR r.status IN (SELECT value FROM json_each(:statuses)))
  AND (NOT :dead OR r.dead_after IS NOT NULL)
  AND (:scope IS NULL OR r.scope_id = :scope)
  AND (:mark IS NULL OR :marked = coalesce((
    SELECT NOT gone FROM records WHERE tenant = :tenant AND kind = :mark AND name = r.run_id
    ORDER BY id DESC LIMIT 1
  ), 0))
  AND (:prefix IS NULL OR substr(r.run_id, 1, length(:prefix)) = :prefix)

-- name: rest
{filters} AND (r.created_at, r.n) < (:at, :n) ORDER BY r.created_at DESC, r.n DESC LIMIT :limit

-- name: used_rest
-- threads, the most recently used first
{filters} AND r.workflow_id = 'moot.thread' AND (r.updated_at, r.n) < (:at, :n)
ORDER BY r.updated_at DESC, r.n DESC LIMIT :limit

-- name: by_prefix
FROM heads AS h CROSS JOIN runs AS r ON r.n = h.n
WHERE h.run_id >= :prefix AND h.run_id < :prefix_end

-- name: by_mark
FROM heads AS h CROSS JOIN runs AS r ON r.n = h.n
WHERE h.run_id IN (SELECT name FROM records WHERE tenant = :tenant AND kind = :mark)

-- name: LIST_PREFIX
{columns} {by_prefix} {rest}

-- name: LIST_MARK
{columns} {by_mark} {rest}

-- name: LIST_PARENT
{columns} FROM runs AS r INDEXED BY runs_parent WHERE r.parent_run = :parent {rest}

-- name: LIST_FORK
{columns} FROM runs AS r INDEXED BY runs_fork WHERE r.fork_of = :fork {rest}

-- name: LIST_MEMBER
{columns} FROM runs AS r INDEXED BY runs_member WHERE r.member = :member {rest}

-- name: LIST_DEAD
{columns} FROM runs AS r INDEXED BY runs_dead WHERE r.dead_after IS NOT NULL {rest}

-- name: LIST_AGENT
{columns} FROM runs AS r INDEXED BY runs_agent WHERE r.agent_id = :agent {rest}

-- name: LIST_STATUS
{columns} FROM runs AS r INDEXED BY runs_status WHERE r.status = :status {rest}

-- name: LIST_WORKFLOW
{columns} FROM runs AS r INDEXED BY runs_workflow WHERE r.workflow_id = :workflow {rest}

-- name: LIST_NEWEST
{columns} FROM runs AS r INDEXED BY runs_newest WHERE true {rest}

-- Threads by last use; the few rows chosen by prefix or mark are sorted.

-- name: USED_PREFIX
{columns} {by_prefix} {used_rest}

-- name: USED_MARK
{columns} {by_mark} {used_rest}

-- name: USED
{columns} FROM runs AS r INDEXED BY runs_used WHERE true {used_rest}
