"""The read side of the SQLite store: threads with read-only connections."""
