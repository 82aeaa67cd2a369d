"""Fold the children on other hosts: requested, running, to be stopped.

They are separate from local children: an id that a peer chose is never looked up among the runs of
this host.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.events import Event
from moot.core.payloads.base import Payload
from moot.core.payloads.hints import EventHints
from moot.core.payloads.nodes import NodeCancelled, NodeDispatched
from moot.core.payloads.supervisors import PeerAsked, PeerAskedAnew, RemoteChildStopped

if TYPE_CHECKING:
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run


#: waits of a remote child that its parent records; after that the child counts as running
MOST_WAITS = 256

#: the next step for a remote child
CREATE, FOLLOW, STOP = "create", "follow", "stop"


class RemoteChild(Struct, omit_defaults=True):
    """One child on another host. Until its id is known, the request id names it."""

    peer: str
    workflow_id: str
    node_id: str
    #: the run that requested it: a fork repeats the event but does not own the child
    owner: str = ""
    asked_at: int = 0
    asked_seq: int = 0
    #: sequence at which the handoff of a dispatch node began
    began: int = 0
    inputs: dict[str, Any] = {}
    cause: str = ""
    depth: int = 0
    tree: int = 0
    #: the child survives when its parent is cancelled
    detached: bool = False
    child: str | None = None
    #: how often its parent showed it as waiting
    waits: int = 0
    host_id: str = ""
    #: the reason to stop it, and since when
    stop: str | None = None
    stop_at: int = 0


def pending_remote_children(run: "Run") -> list[tuple[str, str]]:
    """Return (request id, next step) of each remote child that the run itself requested.

    The host does nothing for the children of a replay.
    """
    if not run.abroad or run.replayed:
        return []
    return [
        (name, STOP if each.stop else CREATE if each.child is None else FOLLOW)
        for name, each in run.abroad.items()
        if each.owner == run.run_id and (each.stop or run.going)
    ]


def remote_names(run: "Run") -> set[str]:
    """Return all request ids and child ids of remote children."""
    return {*run.abroad, *(each.child for each in run.abroad.values() if each.child is not None)}


def find_remote_child(run: "Run", name: str | None) -> tuple[str, RemoteChild] | None:
    """Return the request id and the child with this request id or child id."""
    for key, each in run.abroad.items():
        if name is not None and name in (key, each.child):
            return key, each
    return None


def is_unnamed(run: "Run", name: str) -> bool:
    """Return whether the request has no child id yet."""
    return name in run.abroad and run.abroad[name].child is None


# -- the fold ------------------------------------------------------------------------------------


def _apply_peer_asked(run: "Run", payload: PeerAsked, event: Event, at: int) -> None:
    request_id, worker = payload.ask_id, event.known_hints.worker
    child = run.abroad[request_id] = _remote_child(payload, event, at)
    node = run.nodes.get(child.node_id)
    if node is None:
        return
    node.children += 1
    if worker is not None:
        node.living[request_id] = worker
    else:
        node.child, node.lent = request_id, {}
    node.lent[request_id] = child.tree


def _remote_child(payload: PeerAsked | PeerAskedAnew, event: Event, at: int) -> RemoteChild:
    hints = event.known_hints
    return RemoteChild(
        peer=payload.peer,
        workflow_id=payload.workflow_id,
        node_id=event.node_id if event.node_id is not UNSET else "",
        owner=payload.parent_run_id,
        asked_at=at,
        asked_seq=event.sequence,
        began=event.sequence - 1,
        inputs=hints.inputs,
        cause=payload.cause,
        depth=hints.depth,
        tree=hints.tree or 0,
        detached=hints.detached,
    )


def replace_remote_child(
    run: "Run", payload: PeerAskedAnew, event: Event, at: int
) -> tuple[str, str]:
    """Replace the source's child by a request of the branch; return the old and the new name."""
    former, name = payload.former_ask_id, payload.ask_id
    before = run.abroad.pop(former)
    child = run.abroad[name] = _remote_child(payload, event, at)
    child.began = before.began
    return before.child or former, name


def identify_remote_child(
    run: "Run", node: "NodeState | None", payload: NodeDispatched, event: Event, name: str
) -> None:
    """Record that the child exists; from now on its own id names it."""
    remote = run.abroad.get(name)
    if remote is None:
        return
    remote.child = child_id = payload.child_run_id
    remote.inputs = {}
    remote.host_id = event.known_hints.host_id
    if run.orchestrator is not None:
        run.orchestrator.links = rename_key(run.orchestrator.links, name, child_id)
    if node is not None:
        rename_node_child(node, name, child_id)


def rename_node_child(node: "NodeState", old: str, new: str) -> None:
    """Replace the name of a child in the state of its node."""
    node.child = new if node.child == old else node.child
    node.living = rename_key(node.living, old, new)
    node.lent = rename_key(node.lent, old, new)
    node.waits = rename_key(node.waits, old, new)


def rename_key(mapping: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if old not in mapping:
        return mapping
    return {new if name == old else name: value for name, value in mapping.items()}


def count_wait(run: "Run", child: str) -> None:
    entry = find_remote_child(run, child)
    if entry is not None:
        entry[1].waits += 1


def has_waited_too_often(run: "Run", child: str) -> bool:
    """Return whether the child waited so often that its parent ignores further waits."""
    entry = find_remote_child(run, child)
    return entry is not None and entry[1].waits >= MOST_WAITS


def count_kept_runs(run: "Run", node: "NodeState", hints: EventHints) -> int:
    """Count the runs lent to remote children that the node no longer waits for.

    Return 0 when the hints hold the number that they used, or when the child does not exist.
    """
    is_absent = hints.ask_id is not None and hints.unsure is None
    if not run.abroad or hints.runs is not None or is_absent:
        return 0
    away = remote_names(run)
    return sum(node.lent.get(name, 0) for name in (node.child, *node.living) if name in away)


def release_remote_child(run: "Run", event: Event, name: str, at: int) -> bool:
    """End the handoff. Return False when the child is not a remote one.

    A hint that names the child means that it may still run and must be stopped.
    """
    entry = find_remote_child(run, name)
    if entry is None:
        return False
    key, remote = entry
    hints = event.known_hints
    if name in (hints.child_run_id, hints.unsure):
        _stop_unwanted(run, key, remote, hints.why, at)
    elif not isinstance(event.payload, NodeCancelled):  # else its run ends with the next event
        del run.abroad[key]
    return True


def release_child(run: "Run", event: Event, child: str, status: str | None, at: int) -> None:
    """End a node's wait for a child. A remote child never becomes a living local child."""
    was_unnamed = is_unnamed(run, child)
    if not release_remote_child(run, event, child, at) or (status is not None and not was_unnamed):
        run.children[child] = status


def apply_dispatch_failed(run: "Run", event: Event, at: int) -> None:
    """Remove a worker that could not be started, or that the node did not wait for."""
    name = event.known_hints.ask_id
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if name is not None and release_remote_child(run, event, name, at) and node is not None:
        node.living.pop(name, None)
        if run.orchestrator is not None:
            run.orchestrator.links.pop(name, None)


def _stop_unwanted(run: "Run", key: str, remote: RemoteChild, reason: str, at: int) -> None:
    """Mark the child to be stopped, unless it is detached or another run owns it."""
    if remote.owner != run.run_id or remote.detached:
        del run.abroad[key]
    elif remote.stop is None:
        remote.stop, remote.stop_at = reason, at


def stop_remote_children(run: "Run", at: int) -> None:
    """Mark all remote children to be stopped, because the run has ended."""
    for key, remote in list(run.abroad.items()):
        _stop_unwanted(run, key, remote, f"parent-{run.status.value}", at)


def _apply_peer_stopped(run: "Run", payload: RemoteChildStopped, event: Event, at: int) -> None:
    run.abroad.pop(payload.ask_id, None)


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    PeerAsked: _apply_peer_asked,
    RemoteChildStopped: _apply_peer_stopped,
}
