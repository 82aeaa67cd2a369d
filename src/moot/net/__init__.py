"""Outbound HTTP calls to addresses that callers choose, with limits on both."""
