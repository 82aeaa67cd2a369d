"""Routes for schedules."""
