"""Search runs and conversations by their words."""
