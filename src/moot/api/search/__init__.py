"""Routes for search, read marks and catch-ups."""
