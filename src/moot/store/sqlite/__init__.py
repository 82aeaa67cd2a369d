"""The store in one SQLite file. One thread writes and syncs many batches at once."""

from moot.store.sqlite.errors import SchemaRefused, StoreBusy, StoreReadOnly, StoreRefused
from moot.store.sqlite.store import SqliteStore

__all__ = ["SchemaRefused", "SqliteStore", "StoreBusy", "StoreReadOnly", "StoreRefused"]
