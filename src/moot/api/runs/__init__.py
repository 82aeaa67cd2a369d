"""Routes for runs and their events."""
