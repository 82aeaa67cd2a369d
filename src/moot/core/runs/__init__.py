"""Decide how a run starts, advances and ends."""
