-- Records, in all their versions.

-- name: record_columns
tenant, kind, name, version, body, created_at, by, gone, id

-- name: HISTORY
SELECT {record_columns} FROM records WHERE tenant = ? AND kind = ? AND name = ? ORDER BY id DESC

-- name: NEWEST
{HISTORY} LIMIT 1

-- name: ALL_NEWEST
SELECT {record_columns} FROM records
WHERE id IN (SELECT max(id) FROM records WHERE tenant = ? AND kind = ? GROUP BY name)
  AND NOT gone
ORDER BY name

-- name: newest_ids
SELECT max(id) FROM records WHERE tenant = ? AND kind = ? AND name > ? GROUP BY name

-- name: PAGE
SELECT {record_columns} FROM records WHERE id IN ({newest_ids}) AND NOT gone ORDER BY name LIMIT ?

-- name: COUNT
SELECT count(*) FROM records WHERE id IN ({newest_ids}) AND NOT gone

-- name: TENANTS
SELECT DISTINCT tenant FROM records WHERE kind = ? ORDER BY tenant

-- Ledgers and deliveries.

-- name: ledger_columns
tenant, kind, name, revision, body, due_at

-- name: LEDGER
SELECT {ledger_columns} FROM ledgers WHERE tenant = ? AND kind = ? AND name = ?

-- name: DUE_LEDGERS
SELECT {ledger_columns} FROM ledgers WHERE kind = ? AND due_at <= ? ORDER BY due_at LIMIT ?

-- name: NEXT_LEDGER
SELECT min(due_at) FROM ledgers WHERE kind = ? AND due_at IS NOT NULL

-- name: delivery_columns
tenant, subscription, key, delivery_id, source, state, received_at, updated_at, revision, due_at,
run_id, member, subject, reason, attempts, body

-- name: DELIVERY
SELECT {delivery_columns} FROM deliveries WHERE tenant = ? AND subscription = ? AND key = ?

-- name: DELIVERY_BY_ID
SELECT {delivery_columns} FROM deliveries WHERE delivery_id = ? AND tenant = ?

-- name: rest
  AND d.tenant = :tenant AND (d.received_at, d.id) < (:received_at, :id)
  AND (:subscription IS NULL OR d.subscription = :subscription)
  AND (:sources IS NULL OR d.source IN (SELECT value FROM json_each(:sources)))
  AND (:member IS NULL OR d.member = :member)
  AND (:run IS NULL OR d.run_id = :run)
  AND (:state IS NULL OR d.state = :state)
  AND (:prefix IS NULL OR substr(d.delivery_id, 1, length(:prefix)) = :prefix)
ORDER BY d.received_at DESC, d.id DESC LIMIT :limit

-- One list for each filter whose index the query walks; all other filters are checked row by row.
-- Several states need one query each.

-- name: LIST_PREFIX
SELECT d.id, {delivery_columns} FROM deliveries AS d INDEXED BY deliveries_id
WHERE d.delivery_id >= :prefix AND d.delivery_id < :prefix_end {rest}

-- name: LIST_WITHIN
SELECT d.id, {delivery_columns} FROM deliveries AS d INDEXED BY deliveries_within
WHERE d.subscription = :subscription AND d.state = :state {rest}

-- name: LIST_RUN
SELECT d.id, {delivery_columns} FROM deliveries AS d INDEXED BY deliveries_run WHERE d.run_id = :run {rest}

-- name: LIST_SUBSCRIPTION
SELECT d.id, {delivery_columns} FROM deliveries AS d INDEXED BY deliveries_of
WHERE d.subscription = :subscription {rest}

-- name: LIST_STATE
SELECT d.id, {delivery_columns} FROM deliveries AS d INDEXED BY deliveries_state
WHERE d.state = :state {rest}

-- name: LIST_NEWEST
SELECT d.id, {delivery_columns} FROM deliveries AS d INDEXED BY deliveries_newest WHERE true {rest}

-- name: WAITING
SELECT {delivery_columns} FROM deliveries INDEXED BY deliveries_state
WHERE tenant = ? AND state = 'waiting' AND subscription = ? ORDER BY received_at, id LIMIT ?

-- name: COUNTS
SELECT state, count(*) FROM deliveries INDEXED BY deliveries_within
WHERE tenant = ? AND subscription = ? GROUP BY state

-- name: LANES
-- one step in the index for each lane, however long the lane is
WITH RECURSIVE lane (id) AS (
  SELECT (SELECT id FROM deliveries INDEXED BY deliveries_lane WHERE due_at IS NOT NULL
          ORDER BY tenant, subscription, due_at LIMIT 1)
  UNION ALL
  SELECT (SELECT n.id FROM deliveries AS n INDEXED BY deliveries_lane
          WHERE n.due_at IS NOT NULL AND (n.tenant, n.subscription) > (d.tenant, d.subscription)
          ORDER BY n.tenant, n.subscription, n.due_at LIMIT 1)
  FROM lane CROSS JOIN deliveries AS d ON d.id = lane.id
)
SELECT d.tenant, d.subscription, d.source, d.due_at
FROM lane CROSS JOIN deliveries AS d ON d.id = lane.id

-- name: DUE
SELECT {delivery_columns} FROM deliveries INDEXED BY deliveries_lane
WHERE tenant = ? AND subscription = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?

-- name: FORGET_DELIVERIES
DELETE FROM deliveries WHERE id IN (
  SELECT id FROM deliveries WHERE due_at IS NULL AND updated_at < ? ORDER BY updated_at LIMIT 1000
)

-- The writer.

-- name: RECORD_REVISION
SELECT id FROM records WHERE tenant = ? AND kind = ? AND name = ? ORDER BY id DESC LIMIT 1

-- name: LEDGER_REVISION
SELECT revision FROM ledgers WHERE tenant = ? AND kind = ? AND name = ?

-- name: DELIVERY_REVISION
SELECT revision FROM deliveries WHERE tenant = ? AND subscription = ? AND key = ?

-- name: PUT_RECORD
INSERT INTO records (tenant, kind, name, version, body, created_at, by, gone)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: PUT_LEDGER
INSERT INTO ledgers (tenant, kind, name, revision, body, due_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, kind, name) DO UPDATE SET revision = excluded.revision,
  body = excluded.body, due_at = excluded.due_at

-- name: DROP_LEDGER
DELETE FROM ledgers WHERE tenant = ? AND kind = ? AND name = ?

-- name: PUT_DELIVERY
INSERT INTO deliveries (tenant, subscription, key, delivery_id, source, state, received_at,
                        updated_at, revision, due_at, run_id, member, subject, reason, attempts,
                        body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, subscription, key) DO UPDATE SET delivery_id = excluded.delivery_id,
  state = excluded.state, updated_at = excluded.updated_at, revision = excluded.revision,
  due_at = excluded.due_at, run_id = excluded.run_id, member = excluded.member,
  subject = excluded.subject, reason = excluded.reason, attempts = excluded.attempts,
  body = excluded.body

-- name: DROP_DELIVERY
DELETE FROM deliveries WHERE tenant = ? AND subscription = ? AND key = ?
