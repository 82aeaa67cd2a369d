"""Handlers of the test seams; each one calls the real engine."""
