-- What a subscription has in one state, counted without reading its rows.

CREATE INDEX deliveries_within ON deliveries (tenant, subscription, state, received_at, id);
