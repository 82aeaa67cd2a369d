-- Walks the runs once, and keeps those that are threads in the order of their use.

-- `n` is its last column by itself
CREATE INDEX runs_used ON runs (tenant, updated_at) WHERE workflow_id = 'moot.thread';
