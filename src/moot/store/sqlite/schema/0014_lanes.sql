-- Walks the deliveries that are owed once: one index takes the place of another over the same rows.

-- what is owed is looked for lane by lane, so that a long one hides no other
CREATE INDEX deliveries_lane ON deliveries (tenant, subscription, due_at, id)
  WHERE due_at IS NOT NULL;
DROP INDEX deliveries_due;
