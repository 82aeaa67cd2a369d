"""Schedules: parse them, name their slots, and decide which slots fire."""
