-- Memory entries, one row for each version.

-- name: columns
m.tenant, m.revision, m.scope, m.memory_id, m.content, m.tags, m.run_id, m.sequence, m.ancestors,
m.agent_id, m.write_id, m.written_at, m.created_at, m.expires_at, m.erases, m.forgotten

-- name: then
-- the version that was current at a revision
m.revision <= :at AND (m.superseded IS NULL OR m.superseded > :at)

-- name: lives
m.content IS NOT NULL AND (m.expires_at IS NULL OR m.expires_at > :now)

-- name: newest
ORDER BY m.created_at DESC, m.revision DESC LIMIT :limit

-- name: tagged
SELECT {columns} FROM memory_tags AS t CROSS JOIN memory AS m
ON m.tenant = t.tenant AND m.revision = t.revision
WHERE t.tenant = :tenant AND t.scope = :scope AND t.tag = :tag

-- name: by_tag
ORDER BY t.created_at DESC, t.revision DESC LIMIT :limit

-- name: REVISION
SELECT max(revision) FROM memory WHERE tenant = :tenant

-- name: CURRENT
SELECT {columns} FROM memory AS m INDEXED BY memory_current
WHERE m.tenant = :tenant AND m.scope = :scope AND m.superseded IS NULL AND {lives} {newest}

-- name: THEN
SELECT {columns} FROM memory AS m INDEXED BY memory_newest
WHERE m.tenant = :tenant AND m.scope = :scope AND {then} AND {lives} {newest}

-- name: CURRENT_TAGGED
{tagged} AND m.superseded IS NULL AND {lives} {by_tag}

-- name: THEN_TAGGED
{tagged} AND {then} AND {lives} {by_tag}

-- name: VERSION
SELECT {columns} FROM memory AS m INDEXED BY memory_version
WHERE m.tenant = :tenant AND m.scope = :scope AND m.memory_id = :id AND m.revision <= :at
ORDER BY m.revision DESC LIMIT 1

-- name: LATE
SELECT {columns} FROM json_each(:roots) AS asked CROSS JOIN memory AS m INDEXED BY memory_family
ON m.tenant = :tenant AND m.scope = :scope AND m.root = asked.value AND m.revision > :after
WHERE m.run_id <> ''

-- name: WRITTEN
SELECT {columns} FROM memory AS m WHERE m.tenant = :tenant AND m.write_id = :id

-- name: FORGOTTEN
SELECT EXISTS (
  SELECT 1 FROM memory AS m INDEXED BY memory_lost
  WHERE m.tenant = :tenant AND m.scope = :scope AND m.forgotten = 1 AND {then}
)

-- name: IDS
SELECT memory_id FROM memory INDEXED BY memory_version
WHERE tenant = :tenant AND scope = :scope AND superseded IS NULL AND erases = 0
ORDER BY memory_id

-- name: REFS
SELECT m.scope, count(*) FROM memory AS m INDEXED BY memory_current
WHERE m.tenant = :tenant AND m.superseded IS NULL AND {lives}
GROUP BY m.scope ORDER BY m.scope LIMIT :limit

-- name: CLOSE
UPDATE memory SET superseded = :revision
WHERE tenant = :tenant AND scope = :scope AND memory_id = :id AND superseded IS NULL

-- name: ADD
INSERT INTO memory (tenant, revision, scope, memory_id, content, tags, run_id, sequence, root,
                    ancestors, agent_id, write_id, written_at, created_at, expires_at, erases,
                    forgotten)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)

-- name: ADD_TAG
INSERT INTO memory_tags (tenant, scope, tag, created_at, revision) VALUES (?, ?, ?, ?, ?)

-- name: ERASE_TAGS
DELETE FROM memory_tags WHERE (tenant, scope, tag, created_at, revision) IN (
  SELECT m.tenant, m.scope, asked.value, m.created_at, m.revision
  FROM memory AS m INDEXED BY memory_version CROSS JOIN json_each(m.tags) AS asked
  WHERE m.tenant = :tenant AND m.scope = :scope AND m.memory_id = :id
)

-- name: ERASE
UPDATE memory INDEXED BY memory_version SET content = NULL, tags = '[]', forgotten = 1
WHERE tenant = :tenant AND scope = :scope AND memory_id = :id AND content IS NOT NULL
