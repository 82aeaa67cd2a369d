"""Threads on the command line: list, show, steer, search and speak."""
