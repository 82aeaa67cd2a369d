"""The roster: the standing agents of a tenant."""
