"""Turns of a conversation read from the log, and side threads."""
