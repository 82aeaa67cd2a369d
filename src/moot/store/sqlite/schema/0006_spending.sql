-- Adds columns with constants for defaults, which rewrites nothing, and an index over no rows.

-- derived: what an effect has used up, and on which day (UTC, counted from 1970); money in millionths
ALTER TABLE effects ADD COLUMN day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE effects ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE effects ADD COLUMN money INTEGER NOT NULL DEFAULT 0;
CREATE INDEX effects_by_day ON effects (tenant, day, tokens, money) WHERE day > 0;
