"""Replay, fork, import and verification of runs."""
