"""Answers about the memory of agents."""

from moot.wire.json import WireStruct


class MemorySummary(WireStruct, frozen=True):
    """A memory and the number of its entries."""

    ref: str
    entries: int


class MemoryList(WireStruct, frozen=True):
    """All memories."""

    memories: list[MemorySummary]


class RememberedEntry(WireStruct, frozen=True):
    """One entry of a memory, with the run and the agent that wrote it."""

    id: str
    content: str
    tags: list[str]
    created_at: str
    run_id: str
    expires_at: str | None = None
    agent_id: str | None = None


class MemoryEntryList(WireStruct, frozen=True):
    """The entries of one memory."""

    ref: str
    entries: list[RememberedEntry]


class MemoryErasure(WireStruct, frozen=True):
    """The ids of the erased entries."""

    ref: str
    forgotten: list[str]
