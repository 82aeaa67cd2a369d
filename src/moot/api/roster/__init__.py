"""Routes for standing agents."""
