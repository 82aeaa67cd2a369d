"""Replay on the command line: fork, replay and compare runs."""
