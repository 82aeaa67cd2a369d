"""The memory that a run sees: its scope, its revision and its own writes.

The state of a run holds no entries. A run sees memory as of its start, plus its own writes and
those of its completed children. In the loop of a supervisor, and after it, a run sees memory as of
the start of the turn; writes of a turn are visible from the next turn on.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from moot.core.events import Event, NewEvent, payload_fields, set_fields
from moot.core.memory import is_ref, sharing_scope
from moot.core.payloads.nodes import NodeStarted
from moot.core.payloads.runs import InheritedWrites, RecordedMemory, RunStarted
from moot.core.secrets import secrets_in
from moot.core.workflows.definition import SUPERVISOR

if TYPE_CHECKING:
    from moot.core.state.run import Run
    from moot.core.workflows.flow import Flow, FlowNode

#: events that record the revision of memory
BEGINNINGS = frozenset({RunStarted.event_type, NodeStarted.event_type})
REVISION_HINT = "memoryRevision"

#: the shortest secrets that are redacted in content and in names; shorter ones are too common
SHORTEST_SECRET = 8
SHORTEST_IN_NAMES = 4


class RunMemory(Struct, omit_defaults=True):
    """The scope of a run's memory, and the revision of the tenant's journal that the run sees."""

    scope: str
    #: None when it is not recorded: the run sees the newest memory
    revision: int | None = None
    #: the ancestors of this run, the oldest first
    ancestors: list[str] = []
    inherited: list[InheritedWrites] = []
    #: the revision is that of a supervisor's turn
    turn: bool = False
    #: of a branch: child of its source -> the fork of it that the branch has, and run of such a
    #: child's family -> how many of its events belong to the branch's history
    forks: dict[str, str] = {}
    given: dict[str, int] = {}


def memory_from_start(run: "Run", memory: Any) -> RunMemory:
    """Return the memory that the run's first event describes. A malformed one is the default."""
    try:
        recorded = msgspec.convert(memory, RecordedMemory)
    except msgspec.ValidationError:
        return RunMemory(default_scope(run.run_id, run.scope_id))
    scope = run.run_id if recorded.scope is None else recorded.scope
    ancestors, inherited = recorded.ancestors or [], recorded.inherited or []
    return RunMemory(scope, recorded.revision, ancestors, inherited)


def apply_supervisor_turn(run: "Run", revision: int | None) -> None:
    """Move the memory to the revision of a supervisor's turn that begins."""
    if revision is not None and run.memory is not None:
        run.memory.revision, run.memory.turn = revision, True


def default_scope(run_id: str, scope_id: str | None) -> str:
    return scope_id if scope_id is not None and is_ref(scope_id) else run_id


def memory_scope(run: "Run") -> str:
    return run.memory.scope if run.memory is not None else default_scope(run.run_id, run.scope_id)


def ancestor_runs(run: "Run") -> list[str]:
    return run.memory.ancestors if run.memory is not None else []


def family_root(run: "Run") -> str:
    return (ancestor_runs(run) or [run.run_id])[0]


def add_forked_child(run: "Run", child: str, fork: str, copied: Any) -> None:
    """Count the writes of the source's child, up to the fork, as writes of the branch's child."""
    if run.memory is not None:
        run.memory.forks = {**run.memory.forks, child: fork}
        run.memory.given = {**run.memory.given, **copied}


def record_revision(event: NewEvent, flow: "Flow", revision: int) -> None:
    """Add the revision of memory to an event that begins a run or a supervisor's turn."""
    payload = event.payload
    if isinstance(payload, RunStarted):
        if event.raw is None:
            memory = replace(payload.memory or RecordedMemory(), revision=revision)
            event.payload = replace(payload, memory=memory)
        else:
            fields = payload_fields(event)
            recorded = {**(fields.get("memory") or {}), "revision": revision}
            set_fields(event, {**fields, "memory": recorded})
        return
    hints = event.hints or {}
    node = flow.nodes.get(event.node_id or "")
    is_first_attempt = isinstance(payload, NodeStarted) and payload.attempt == 1
    first = is_first_attempt or "again" in hints
    if node is not None and node.type.type_id == SUPERVISOR and first:
        event.hints = {**hints, REVISION_HINT: revision}


def carry_revision(recorded: Event, new: NewEvent) -> None:
    """Copy the revision to a turn that is decided again."""
    if recorded.hints is not UNSET and REVISION_HINT in recorded.hints:
        new.hints = {**(new.hints or {}), REVISION_HINT: recorded.hints[REVISION_HINT]}


def memory_of_fork(event: Event, from_seq: int) -> dict[str, Any]:
    """Return the memory of a fork: that of its source, with the source's writes before the fork."""
    memory = payload_fields(event).get("memory")
    if not isinstance(memory, dict):
        return {}
    own = {key: memory[key] for key in ("scope", "revision") if key in memory}
    root = (memory.get("ancestors") or [event.run_id])[0]
    before = [
        {**each, "below": min(each["below"], from_seq)} for each in memory.get("inherited", [])
    ]
    source = {"run": event.run_id, "root": root, "below": from_seq}
    return {"memory": {**own, "inherited": [*before, source]}}


# -- which writes a run sees ---------------------------------------------------------------------


class MemoryView(Struct, frozen=True):
    """All writes up to a revision, and later writes of these families of runs."""

    revision: int | None
    roots: tuple[str, ...] = ()


def memory_view(run: "Run") -> MemoryView:
    memory = run.memory
    if memory is None or memory.revision is None:
        return MemoryView(None)
    if memory.turn:
        return MemoryView(memory.revision)
    roots = [family_root(run), *(each.root for each in memory.inherited)]
    return MemoryView(memory.revision, tuple(dict.fromkeys(roots)))


def can_see_write(run: "Run", author: str, sequence: int, ancestors: list[str]) -> bool:
    """Return whether a later write is the run's own, or that of a completed child."""
    line = [*ancestors, author]
    for name, below in _authors(run):
        if author == name:
            return sequence < below
        if name in ancestors:
            child = line[line.index(name) + 1]
            return _is_completed(run, child) and sequence < _write_limit(run, author, sequence)
    return False


def _is_completed(run: "Run", child: str) -> bool:
    forks = run.memory.forks if run.memory is not None else {}
    return run.children.get(forks.get(child, child)) == "completed"


def _write_limit(run: "Run", author: str, sequence: int) -> int:
    """Return the sequence below which the author's writes count."""
    limits = run.memory.given if run.memory is not None else {}
    return limits.get(author, sequence + 1)


def _authors(run: "Run") -> Iterator[tuple[str, int]]:
    yield run.run_id, run.next_sequence
    for each in run.memory.inherited if run.memory is not None else ():
        yield each.run, each.below


def memory_ref(run: "Run", node: "FlowNode") -> str:
    """Return the node's default memory: its agent's own, else a shared one, else the run's."""
    agent = node.definition.agent
    pinned = agent.get("memoryRef") if isinstance(agent, dict) else None
    if isinstance(pinned, str):
        return pinned
    sharing = node.definition.config.get("agentSharing")
    own = memory_scope(run)
    return sharing_scope(sharing, own) if isinstance(sharing, str) else own


# -- what must not be remembered -----------------------------------------------------------------


def redact_secrets(
    text: str, sealed: Iterable[dict[str, Any]], shortest: int = SHORTEST_SECRET
) -> str:
    """Replace each secret by its name, the longest first."""
    names = {
        secret: _secret_id(name)
        for values in sealed
        for name, value in values.items()
        for secret in secrets_in([value])
        if isinstance(secret, str) and len(secret) >= shortest
    }
    if not names:
        return text
    longest_first = sorted(names, key=lambda secret: (-len(secret), secret))
    pattern = "|".join(map(re.escape, longest_first))
    return re.sub(pattern, lambda match: f"[REDACTED:{names[match[0]]}]", text)


def _secret_id(name: str) -> str:
    """Return ``token`` for ``var:token``."""
    return name.partition(":")[2].replace(":", ".") or name
