"""Routes that fork, compare and verify runs."""
