"""The store in one SQLite file: one thread writes, committing many batches with one sync."""

from moot.store.sqlite.errors import SchemaRefused, StoreBusy, StoreReadOnly, StoreRefused
from moot.store.sqlite.store import SqliteStore

__all__ = ["SchemaRefused", "SqliteStore", "StoreBusy", "StoreReadOnly", "StoreRefused"]
