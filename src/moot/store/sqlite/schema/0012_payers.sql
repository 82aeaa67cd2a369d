-- Rewrites what effects have used up once, and makes an index over it.

-- derived: the standing agent whose budget an effect is charged to
ALTER TABLE effects ADD COLUMN member TEXT;
UPDATE effects SET member = (SELECT r.member FROM runs AS r WHERE r.run_id = effects.run_id
                             AND r.tenant = effects.tenant)
WHERE day > 0;
CREATE INDEX effects_by_member ON effects (tenant, member, day, tokens, money)
WHERE day > 0 AND member IS NOT NULL;
