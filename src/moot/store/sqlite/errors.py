"""Errors for a file that cannot be used, each with a message for the operator.

StoreRefused
├── StoreBusy       another process writes to it
├── StoreReadOnly   it is open for reading only
└── SchemaRefused   this version does not know its tables
"""


class StoreRefused(Exception):
    """The store cannot be used; the message says why and what to do."""


class StoreBusy(StoreRefused):
    """Another process has the store open for writing; ``pid`` is that process if known."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class StoreReadOnly(StoreRefused):
    """The caller tried to write to a store that is open for reading only."""


class SchemaRefused(StoreRefused):
    """The file's tables are newer than this version, altered, or not Moot's at all."""
