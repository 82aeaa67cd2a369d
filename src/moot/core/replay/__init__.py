"""Replay and fork: read a log again, compare it, and continue from a place in it."""
