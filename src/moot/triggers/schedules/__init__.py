"""Schedules: records, decisions, and the runs that they start."""
