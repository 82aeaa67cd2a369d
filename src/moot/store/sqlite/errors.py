"""Why a file cannot be used; each carries a sentence for the operator.

StoreRefused
├── StoreBusy       another process writes to it
├── StoreReadOnly   it was opened to look, not to write
└── SchemaRefused   its tables are not the ones this version knows
"""


class StoreRefused(Exception):
    """The store cannot be used as asked; the message says why and what to do."""


class StoreBusy(StoreRefused):
    """Another process has the store open for writing: this one, where it is known."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class StoreReadOnly(StoreRefused):
    """A write was asked of a store that is open for reading only."""


class SchemaRefused(StoreRefused):
    """The file's tables are newer than this version, altered, or not Moot's at all."""
