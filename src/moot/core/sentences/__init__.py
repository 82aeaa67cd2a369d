"""Sentences about events, the same for commands, minutes, pages and Agent Bridge."""
