-- The search index and read marks.

-- name: SEARCH
SELECT t.rowid, h.run_id, ifnull(r.workflow_id, ''), p.sequence, p.part, e.body
FROM texts AS t CROSS JOIN text_places AS p ON p.id = t.rowid
CROSS JOIN heads AS h ON h.n = p.n AND h.tenant = :tenant
CROSS JOIN events AS e ON e.n = p.n AND e.sequence = p.sequence
LEFT JOIN runs AS r ON r.n = p.n
WHERE t.texts MATCH :words AND t.rowid < :before AND (
  :placed OR p.source IS NULL
  OR NOT EXISTS (SELECT 1 FROM heads AS o WHERE o.run_id = p.source AND o.tenant = :tenant)
)
ORDER BY t.rowid DESC LIMIT :limit

-- name: NUMBER
SELECT n FROM heads WHERE run_id = ? AND tenant = ?

-- name: MARK
INSERT INTO read_marks (tenant, reader, thread_id, sequence, turn, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, reader, thread_id) DO UPDATE
SET sequence = excluded.sequence, turn = excluded.turn, at = excluded.at
WHERE excluded.sequence > read_marks.sequence

-- name: READ_MARKS
SELECT m.tenant, m.reader, m.thread_id, m.sequence, m.turn, m.at
FROM json_each(?) AS asked CROSS JOIN read_marks AS m
ON m.tenant = ? AND m.reader = ? AND m.thread_id = asked.value

-- name: WAITING
SELECT count(*) FROM text_queue

-- name: LAST
SELECT max(id) FROM text_places

-- name: TAKEN
SELECT 1 FROM text_places WHERE id = ?

-- name: NEXT
SELECT q.at, q.n, q.sequence, q.source, h.tenant, e.body
FROM text_queue AS q CROSS JOIN heads AS h ON h.n = q.n
LEFT JOIN events AS e ON e.n = q.n AND e.sequence = q.sequence
ORDER BY q.at, q.n, q.sequence LIMIT ?

-- name: DONE
DELETE FROM text_queue WHERE (at, n, sequence) <= (?, ?, ?)

-- name: ADD_PLACES
INSERT INTO text_places (id, n, sequence, part, source)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL

-- name: ADD_TEXTS
INSERT INTO texts (rowid, text, marks)
SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
