"""Decide who speaks in a council and what the host does when a member answers."""
