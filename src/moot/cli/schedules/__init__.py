"""Schedules on the command line."""
