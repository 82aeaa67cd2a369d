"""What of memory a run sees: where its own is, how far it had come when the run or the turn of its
supervisor began, and whose later writes it knows of. No entry is in the state of a run.

Within a run memory stands still at its beginning, apart from what the run itself and its completed
children write. In the loop of a supervisor, and after it, it stands still at the beginning of each
turn, and what a turn writes is seen from the next one on.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.events import Event, NewEvent
from moot.core.memory import context, is_ref
from moot.core.secrets import secrets_in
from moot.core.workflows.definition import SUPERVISOR

if TYPE_CHECKING:
    from moot.core.state.run import Run
    from moot.core.workflows.graph import Flow, FlowNode

#: events that say how far memory had come
BEGINNINGS = frozenset({"run.started", "node.started"})
MARK = "memoryRevision"

#: shorter secrets are too common to be looked for in what is remembered; in names they are not
SHORTEST_SECRET = 8
SHORTEST_IN_NAMES = 4


class Inherited(Struct, frozen=True):
    """Writes of the run that this one was forked from, up to the place of the fork."""

    run: str
    root: str
    below: int


class Memory(Struct, omit_defaults=True):
    """Where a run's memory is, and as of which revision of the tenant's journal it sees it."""

    scope: str
    #: None where nobody wrote it down: the run sees memory as it is
    revision: int | None = None
    #: the runs this one comes from, the first of them first
    ancestors: list[str] = []
    inherited: list[Inherited] = []
    #: the revision is that of a supervisor's turn
    turn: bool = False
    #: of a branch: child of its source -> the fork of it that the branch has, and run of such a
    #: child's family -> how many of its events belong to the branch's history
    forks: dict[str, str] = {}
    given: dict[str, int] = {}


def begun(run: "Run", said: Any) -> Memory:
    """The memory of a run that begins, as its first event tells."""
    if not isinstance(said, dict):
        return Memory(default_scope(run.run_id, run.scope_id))
    inherited = [
        Inherited(each["run"], each["root"], each["below"]) for each in said.get("inherited", [])
    ]
    return Memory(
        said.get("scope", run.run_id),
        said.get("revision"),
        list(said.get("ancestors", [])),
        inherited,
    )


def turned(run: "Run", hints: dict[str, Any]) -> None:
    """A supervisor's turn begins."""
    if MARK in hints and run.memory is not None:
        run.memory.revision, run.memory.turn = hints[MARK], True


def default_scope(run_id: str, scope_id: str | None) -> str:
    return scope_id if scope_id is not None and is_ref(scope_id) else run_id


def scope_of(run: "Run") -> str:
    return run.memory.scope if run.memory is not None else default_scope(run.run_id, run.scope_id)


def ancestors_of(run: "Run") -> list[str]:
    return run.memory.ancestors if run.memory is not None else []


def root_of(run: "Run") -> str:
    return (ancestors_of(run) or [run.run_id])[0]


def child_forked(run: "Run", child: str, fork: str, given: Any) -> None:
    """What a child of the source had written by then is what the branch's own child had written."""
    if run.memory is not None:
        run.memory.forks = {**run.memory.forks, child: fork}
        run.memory.given = {**run.memory.given, **given}


def marked(new: NewEvent, flow: "Flow", revision: int) -> None:
    """Writes down how far memory has come, where a run or a turn of its supervisor begins."""
    if new.type == "run.started":
        new.payload["memory"] = {**new.payload.get("memory", {}), "revision": revision}
        return
    hints = new.hints or {}
    node = flow.nodes.get(new.node_id or "")
    first = new.payload.get("attempt") == 1 or "again" in hints
    if node is not None and node.type.type_id == SUPERVISOR and first:
        new.hints = {**hints, MARK: revision}


def carried(was: Event, new: NewEvent) -> None:
    """A turn that is worked out anew sees what it saw."""
    if was.hints is not UNSET and MARK in was.hints:
        new.hints = {**(new.hints or {}), MARK: was.hints[MARK]}


def forked(event: Event, from_seq: int) -> dict[str, Any]:
    """The memory of a fork of the run that began with this event: that of its source, with what
    the source had written by then."""
    said = event.payload.get("memory")
    if not isinstance(said, dict):
        return {}
    kept = {key: said[key] for key in ("scope", "revision") if key in said}
    root = (said.get("ancestors") or [event.run_id])[0]
    before = [{**each, "below": min(each["below"], from_seq)} for each in said.get("inherited", [])]
    mine = {"run": event.run_id, "root": root, "below": from_seq}
    return {"memory": {**kept, "inherited": [*before, mine]}}


# -- which writes a run sees ---------------------------------------------------------------------


class View(Struct, frozen=True):
    """What a run sees: everything up to a revision, and later writes of these families."""

    revision: int | None
    roots: tuple[str, ...] = ()


def view(run: "Run") -> View:
    memory = run.memory
    if memory is None or memory.revision is None:
        return View(None)
    if memory.turn:
        return View(memory.revision)
    roots = [root_of(run), *(each.root for each in memory.inherited)]
    return View(memory.revision, tuple(dict.fromkeys(roots)))


def knows_of(run: "Run", author: str, sequence: int, ancestors: list[str]) -> bool:
    """Whether a later write is the run's own, or that of a child that has completed."""
    line = [*ancestors, author]
    for name, below in _authors(run):
        if author == name:
            return sequence < below
        if name in ancestors:
            child = line[line.index(name) + 1]
            return _completed(run, child) and sequence < _given(run, author, sequence)
    return False


def _completed(run: "Run", child: str) -> bool:
    forks = run.memory.forks if run.memory is not None else {}
    return run.children.get(forks.get(child, child)) == "completed"


def _given(run: "Run", author: str, sequence: int) -> int:
    """Below which place its writes count; anywhere, unless it lived on after the fork."""
    known = run.memory.given if run.memory is not None else {}
    return known.get(author, sequence + 1)


def _authors(run: "Run") -> Iterator[tuple[str, int]]:
    yield run.run_id, run.next_sequence
    for each in run.memory.inherited if run.memory is not None else ():
        yield each.run, each.below


def ref_of(run: "Run", node: "FlowNode") -> str:
    """The memory a node uses unless it names another one: its agent's own, one that is shared,
    else the run's."""
    agent = node.definition.agent
    pinned = agent.get("memoryRef") if isinstance(agent, dict) else None
    if isinstance(pinned, str):
        return pinned
    sharing = node.definition.config.get("agentSharing")
    own = scope_of(run)
    return context(sharing, own) if isinstance(sharing, str) else own


# -- what must not be remembered -----------------------------------------------------------------


def redacted(text: str, sealed: Iterable[dict[str, Any]], shortest: int = SHORTEST_SECRET) -> str:
    """The text with the name of each secret in place of its value, the longest first."""
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
    return re.sub(pattern, lambda found: f"[REDACTED:{names[found[0]]}]", text)


def _secret_id(name: str) -> str:
    """``var:token`` is the secret token."""
    return name.partition(":")[2].replace(":", ".") or name
