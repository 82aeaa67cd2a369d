"""Routes for threads and councils."""
