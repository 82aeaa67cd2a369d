"""Decide the controls of a thread, its seats, links and views."""
