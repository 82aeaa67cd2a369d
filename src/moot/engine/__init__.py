"""Commands in, events out: the one write path, and the effects that touch the world."""
