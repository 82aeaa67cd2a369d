"""The write side of the SQLite store: one thread, one connection, group commits."""
