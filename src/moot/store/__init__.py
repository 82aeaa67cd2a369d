"""Stores for logs and records: one protocol, SQLite and in-memory versions of it."""
