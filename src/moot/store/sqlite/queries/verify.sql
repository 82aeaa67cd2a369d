-- All that verifying a file reads; texts are read as bytes.

-- name: heads
SELECT n, CAST(tenant AS BLOB), CAST(run_id AS BLOB), next_sequence, CAST(hash AS BLOB)
FROM heads

-- name: events
SELECT n, sequence, CAST(hash AS BLOB), CAST(body AS BLOB) FROM events

-- name: HEADS
{heads} ORDER BY n

-- name: EVENTS
{events} ORDER BY n, sequence

-- name: ONE_HEAD
{heads} WHERE run_id = ? AND tenant = ?

-- name: ITS_EVENTS
{events} WHERE n = ? ORDER BY sequence

-- name: LOST_LOGS
SELECT CAST(tenant AS BLOB), CAST(run_id AS BLOB) FROM runs
WHERE NOT EXISTS (SELECT 1 FROM heads WHERE heads.n = runs.n)

-- name: DEFINITIONS
SELECT CAST(tenant AS BLOB), CAST(workflow_id AS BLOB), CAST(digest AS BLOB), CAST(body AS BLOB)
FROM definitions ORDER BY id

-- name: MEMORY
-- each memory write with the event that should record it
SELECT CAST(m.tenant AS BLOB), CAST(m.run_id AS BLOB), m.sequence, CAST(m.memory_id AS BLOB),
       CAST(e.body AS BLOB)
FROM memory AS m
LEFT JOIN heads AS h ON h.run_id = m.run_id AND h.tenant = m.tenant
LEFT JOIN events AS e ON e.n = h.n AND e.sequence = m.sequence
WHERE m.run_id <> '' ORDER BY m.n
