"""Children on other hosts, as the log of their parent tells: asked for, there, to be stopped.

They are kept apart from the children that live here: a name that another host chose is never
looked up among the runs of this one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.events import Event

if TYPE_CHECKING:
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run

ASKED_ANEW = "moot.peer.askedAnew"

#: how often a child on another host is shown to wait; after that it is shown as running
MOST_WAITS = 256

#: what is still to be done about a child on another host
CREATE, FOLLOW, STOP = "create", "follow", "stop"


class Abroad(Struct, omit_defaults=True):
    """One child on another host. Until its id is known it goes by the name it was asked for."""

    peer: str
    workflow_id: str
    node_id: str
    #: the run that asked: a fork repeats what its source said and sees to none of its children
    owner: str = ""
    asked_at: int = 0
    asked_seq: int = 0
    #: where the handoff of a dispatch node began
    began: int = 0
    inputs: dict[str, Any] = {}
    cause: str = ""
    depth: int = 0
    tree: int = 0
    #: it lives on when its parent is cancelled
    detached: bool = False
    child: str | None = None
    #: how often it was shown to wait
    waits: int = 0
    host_id: str = ""
    #: why it is not wanted any more, and since when
    stop: str | None = None
    stop_at: int = 0


def owed(run: "Run") -> list[tuple[str, str]]:
    """(name, what is to be done) for each child on another host. A replay is owed nothing, and
    nobody is for the children of another run."""
    if not run.abroad or run.replayed:
        return []
    return [
        (name, STOP if each.stop else CREATE if each.child is None else FOLLOW)
        for name, each in run.abroad.items()
        if each.owner == run.run_id and (each.stop or run.going)
    ]


def names(run: "Run") -> set[str]:
    """Everything a child on another host may be called in the state of this run."""
    return {*run.abroad, *(each.child for each in run.abroad.values() if each.child is not None)}


def entry_of(run: "Run", name: str | None) -> tuple[str, Abroad] | None:
    """The entry with this name or child id."""
    for key, each in run.abroad.items():
        if name is not None and name in (key, each.child):
            return key, each
    return None


def unnamed(run: "Run", name: str) -> bool:
    """Whether this is a child that was asked for and has no id yet."""
    return name in run.abroad and run.abroad[name].child is None


# -- the fold ------------------------------------------------------------------------------------


def _asked(run: "Run", event: Event, at: int) -> None:
    name, hints = event.payload["askId"], event.hints if event.hints is not UNSET else {}
    entry = run.abroad[name] = _entry(event, at)
    node = run.nodes.get(entry.node_id)
    if node is None:
        return
    node.children += 1
    if "worker" in hints:
        node.living[name] = hints["worker"]
    else:
        node.child, node.lent = name, {}
    node.lent[name] = entry.tree


def _entry(event: Event, at: int) -> Abroad:
    said, hints = event.payload, event.hints if event.hints is not UNSET else {}
    return Abroad(
        peer=said["peer"],
        workflow_id=said["workflowId"],
        node_id=event.node_id if event.node_id is not UNSET else "",
        owner=said.get("parentRunId", ""),
        asked_at=at,
        asked_seq=event.sequence,
        began=event.sequence - 1,
        inputs=hints.get("inputs", {}),
        cause=said.get("cause", ""),
        depth=hints.get("depth", 0),
        tree=hints.get("tree", 0),
        detached=hints.get("detached", False),
    )


def renewed(run: "Run", event: Event, at: int) -> tuple[str, str]:
    """A branch asks for a child of its own; what the source's was called, and what this one is."""
    former, name = event.payload["formerAskId"], event.payload["askId"]
    before = run.abroad.pop(former)
    entry = run.abroad[name] = _entry(event, at)
    entry.began = before.began
    return before.child or former, name


def found(run: "Run", node: "NodeState | None", event: Event, name: str) -> None:
    """The child exists; from now on it goes by its own id."""
    entry = run.abroad.get(name)
    if entry is None:
        return
    entry.child = child = event.payload.get("childRunId", "")
    entry.inputs = {}
    entry.host_id = event.hints.get("hostId", "") if event.hints is not UNSET else ""
    if run.orchestrator is not None:
        run.orchestrator.links = renamed(run.orchestrator.links, name, child)
    if node is not None:
        goes_by(node, name, child)


def goes_by(node: "NodeState", old: str, new: str) -> None:
    """From here on the node knows a child by another name."""
    node.child = new if node.child == old else node.child
    node.living = renamed(node.living, old, new)
    node.lent = renamed(node.lent, old, new)
    node.waits = renamed(node.waits, old, new)


def renamed(found: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if old not in found:
        return found
    return {new if name == old else name: value for name, value in found.items()}


def waited(run: "Run", child: str) -> None:
    """Its parent shows that it waits."""
    known = entry_of(run, child)
    if known is not None:
        known[1].waits += 1


def restless(run: "Run", child: str) -> bool:
    """Whether it has been shown to wait so often that no more is made of it."""
    known = entry_of(run, child)
    return known is not None and known[1].waits >= MOST_WAITS


def kept(run: "Run", node: "NodeState", hints: dict[str, Any]) -> int:
    """What children elsewhere hold that the node does not wait for any more: they may use it all.
    Nothing, where it is said how much they used, or that there is none."""
    if not run.abroad or "runs" in hints or ("askId" in hints and "unsure" not in hints):
        return 0
    away = names(run)
    return sum(node.lent.get(name, 0) for name in (node.child, *node.living) if name in away)


def left(run: "Run", event: Event, name: str, at: int) -> bool:
    """The handoff is over, one way or another. False when the child was none of another host's.

    A hint that names the child says that it may still be there and is not wanted.
    """
    known = entry_of(run, name)
    if known is None:
        return False
    key, entry = known
    hints = event.hints if event.hints is not UNSET else {}
    if name in (hints.get("childRunId"), hints.get("unsure")):
        _unwanted(run, key, entry, hints.get("why", "not-needed"), at)
    elif event.type != "node.cancelled":  # else its run ends with the next event
        del run.abroad[key]
    return True


def given_back(run: "Run", event: Event, child: str, status: str | None, at: int) -> None:
    """A node waits for this child no more. One elsewhere is never counted as living here."""
    nameless = unnamed(run, child)
    if not left(run, event, child, at) or (status is not None and not nameless):
        run.children[child] = status


def refused(run: "Run", event: Event, at: int) -> None:
    """A worker that could not be started, or was not waited for."""
    hints = event.hints if event.hints is not UNSET else {}
    name = hints.get("askId")
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if name is not None and left(run, event, name, at) and node is not None:
        node.living.pop(name, None)
        if run.orchestrator is not None:
            run.orchestrator.links.pop(name, None)


def _unwanted(run: "Run", key: str, entry: Abroad, why: str, at: int) -> None:
    """Another run's child is left to that run, and one that may live on to itself."""
    if entry.owner != run.run_id or entry.detached:
        del run.abroad[key]
    elif entry.stop is None:
        entry.stop, entry.stop_at = why, at


def ended(run: "Run", at: int) -> None:
    """The run is over: what it has begun elsewhere is to be stopped."""
    for key, entry in list(run.abroad.items()):
        _unwanted(run, key, entry, f"parent-{run.status.value}", at)


def _stopped(run: "Run", event: Event, at: int) -> None:
    run.abroad.pop(event.payload.get("askId", ""), None)


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    "moot.peer.asked": _asked,
    "moot.peer.stopped": _stopped,
}
