"""inbound."""
