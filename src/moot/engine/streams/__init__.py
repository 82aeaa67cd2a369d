"""Live streams: committed events, presence, turns in progress."""
