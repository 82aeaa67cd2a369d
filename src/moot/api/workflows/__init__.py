"""Routes for workflows, and workflows read from a folder."""
