"""Which version of an agent serves whom: states of versions, channels, shares of runs.

Pure. A change is decided on what there is, gives what there is then, and the events that tell of
it; or it is refused.
"""

import hashlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.core.errors import BadRequest, Conflict

State = Literal["draft", "test", "staged", "active", "paused", "deprecated", "rolled-back"]
STATES: tuple[State, ...] = (
    "draft", "test", "staged", "active", "paused", "deprecated", "rolled-back"
)  # fmt: skip

#: where a version may go from each state by being promoted
PROMOTED: dict[State, State] = {
    "draft": "test", "test": "staged", "staged": "active", "paused": "active"
}  # fmt: skip

STABLE, LATEST = "stable", "latest"
#: channels that versions are bound to; ``latest`` is the newest active one without being bound
BOUND = (STABLE, "canary")
CHANNELS = (*BOUND, LATEST)

Percent = Annotated[int, Meta(ge=0, le=100)]
Version = Annotated[str, Meta(min_length=1, max_length=64)]


class Change(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is asked for, as the protocol has it."""

    version: Version
    transition: Literal["promote", "pause", "deprecate", "rollback", "adjust-canary"]
    to_state: State | None = None
    channel: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    canary_percent: Percent | None = None
    eval_run_id: Annotated[str, Meta(min_length=1)] | None = None
    reason: Annotated[str, Meta(min_length=1, max_length=512)] | None = None


class Deployed(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One version."""

    version: str
    state: State = "draft"
    channels: tuple[str, ...] = ()
    canary_percent: int = 100
    rollback_pointer: str | None = None
    eval_run_id: str | None = None


class Deployment(Struct, frozen=True, kw_only=True, rename="camel"):
    """The versions of one agent, in the order they were first promoted."""

    agent_id: str
    versions: dict[str, Deployed] = {}

    def of(self, version: str) -> Deployed:
        return self.versions.get(version) or Deployed(version=version)

    def put(self, *changed: Deployed) -> "Deployment":
        return replace(self, versions={**self.versions, **{each.version: each for each in changed}})

    def serving(self, channel: str) -> list[Deployed]:
        """The active versions of a channel, those that get a share of the runs first."""
        found = [
            each
            for each in self.versions.values()
            if each.state == "active" and (channel == LATEST or channel in each.channels)
        ]
        if channel == LATEST:
            return found[-1:]
        return sorted(found, key=lambda each: each.canary_percent)


Told = tuple[str, dict[str, Any]]


def changed(found: Deployment, asked: Change) -> tuple[Deployment, list[Told]]:
    """What there is then, and what is told of it. Raises Conflict or BadRequest."""
    if asked.channel is not None and asked.channel not in BOUND:
        raise BadRequest(
            f"'{asked.channel}' is no channel to bind a version to; use {', '.join(BOUND)}.",
            field="channel",
        )
    return CHANGES[asked.transition](found, found.of(asked.version), asked)


def _promote(found: Deployment, mine: Deployed, asked: Change) -> tuple[Deployment, list[Told]]:
    binds = mine.state == "active" and asked.channel is not None
    target = mine.state if binds else PROMOTED.get(mine.state)
    if target is None or asked.to_state not in (None, target):
        raise _illegal(mine, asked.to_state or "the next state")
    mine = replace(mine, state=target, eval_run_id=asked.eval_run_id or mine.eval_run_id)
    told: dict[str, Any] = {"toVersion": mine.version, "toState": target}
    if target != "active":
        if asked.canary_percent is not None or asked.channel is not None:
            raise BadRequest("Only an active version serves a channel.", field="channel")
        return found.put(mine), [_told("promoted", found, told)]
    channel = asked.channel or (mine.channels[0] if mine.channels else STABLE)
    before = [each for each in found.serving(channel) if each.version != mine.version]
    percent = 100 if asked.canary_percent is None else asked.canary_percent
    mine = replace(
        mine,
        channels=tuple(dict.fromkeys((*mine.channels, channel))),
        canary_percent=percent,
        rollback_pointer=before[-1].version if before else mine.rollback_pointer,
    )
    told |= {"channel": channel, "canaryPercent": percent}
    if before:
        told["fromVersion"] = before[-1].version
    if mine.eval_run_id is not None:
        told["evalRunId"] = mine.eval_run_id
    return _shared(found.put(mine), mine, (channel,)), [_told("promoted", found, told)]


def _shared(found: Deployment, mine: Deployed, channels: tuple[str, ...]) -> Deployment:
    """A version that gets every run takes the channel from the others; shares add up to all."""
    for channel in channels:
        others = [each for each in found.serving(channel) if each.version != mine.version]
        if mine.canary_percent == 100:
            whole = [each for each in others if each.canary_percent == 100]
            found = found.put(*(_without(each, channel) for each in whole))
            continue
        parts = sum(each.canary_percent for each in others if each.canary_percent < 100)
        if parts + mine.canary_percent > 100:
            raise Conflict(f"More than all runs of '{channel}' would be shared out.")
    return found


def _without(mine: Deployed, channel: str) -> Deployed:
    return replace(mine, channels=tuple(each for each in mine.channels if each != channel))


def _pause(found: Deployment, mine: Deployed, asked: Change) -> tuple[Deployment, list[Told]]:
    return _moved(found, mine, asked, "paused", mine.channels)


def _deprecate(found: Deployment, mine: Deployed, asked: Change) -> tuple[Deployment, list[Told]]:
    return _moved(found, mine, asked, "deprecated", ())


def _moved(
    found: Deployment, mine: Deployed, asked: Change, state: State, channels: tuple[str, ...]
) -> tuple[Deployment, list[Told]]:
    if mine.state != "active" or asked.to_state not in (None, state):
        raise _illegal(mine, asked.to_state or state)
    told = {"version": mine.version, "fromState": mine.state, "toState": state}
    moved = replace(mine, state=state, channels=channels)
    return found.put(moved), [_told("state.changed", found, told)]


def _rollback(found: Deployment, mine: Deployed, asked: Change) -> tuple[Deployment, list[Told]]:
    pointer = mine.rollback_pointer
    if mine.state != "active" or asked.to_state not in (None, "rolled-back"):
        raise _illegal(mine, "rolled-back")
    if pointer is None:
        raise Conflict(
            f"Version {mine.version} took nobody's place; there is nothing to go back to.",
            version=mine.version,
        )
    back = found.of(pointer)
    channels = tuple(dict.fromkeys((*back.channels, *mine.channels)))
    back = replace(back, state="active", channels=channels, canary_percent=100)
    gone = replace(mine, state="rolled-back", channels=())
    told: dict[str, Any] = {
        "fromVersion": mine.version,
        "toVersion": pointer,
        "rollbackPointer": pointer,
    }
    if asked.reason is not None:
        told["reason"] = asked.reason
    return _shared(found.put(gone, back), back, channels), [_told("rolled-back", found, told)]


def _adjust(found: Deployment, mine: Deployed, asked: Change) -> tuple[Deployment, list[Told]]:
    if asked.canary_percent is None:
        raise BadRequest("canaryPercent says which share of the runs.", field="canaryPercent")
    if mine.state != "active" or not mine.channels:
        raise Conflict(f"Version {mine.version} serves no channel.", version=mine.version)
    told = {
        "version": mine.version,
        "fromPercent": mine.canary_percent,
        "toPercent": asked.canary_percent,
    }
    mine = replace(mine, canary_percent=asked.canary_percent)
    return (
        _shared(found.put(mine), mine, mine.channels),
        [_told("canary.adjusted", found, told)],
    )


CHANGES = {
    "promote": _promote,
    "pause": _pause,
    "deprecate": _deprecate,
    "rollback": _rollback,
    "adjust-canary": _adjust,
}


def _told(what: str, found: Deployment, payload: dict[str, Any]) -> Told:
    return f"deployment.{what}", {"agentId": found.agent_id, **payload}


class _Event(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    agent_id: Annotated[str, Meta(min_length=1, max_length=256)]


class _Promoted(_Event, frozen=True, kw_only=True):
    to_version: Version
    to_state: State
    channel: str | None = None
    canary_percent: Percent | None = None
    from_version: Version | None = None
    eval_run_id: str | None = None


class _Moved(_Event, frozen=True, kw_only=True):
    version: Version
    from_state: State
    to_state: State


class _RolledBack(_Event, frozen=True, kw_only=True):
    from_version: Version
    to_version: Version
    rollback_pointer: Version
    reason: str | None = None


class _Adjusted(_Event, frozen=True, kw_only=True):
    version: Version
    from_percent: Percent
    to_percent: Percent


#: everything that a change of versions is told by
EVENTS: dict[str, type[_Event]] = {
    "deployment.promoted": _Promoted,
    "deployment.state.changed": _Moved,
    "deployment.rolled-back": _RolledBack,
    "deployment.canary.adjusted": _Adjusted,
}


def checked(told: Any) -> list[Told]:
    """The events of a change. Raises BadRequest when it is anything else: what is told is believed
    by whoever reads the log."""
    found: list[Told] = []
    for type_, payload in msgspec.convert(told, list[tuple[str, dict[str, Any]]]):
        if type_ not in EVENTS:
            raise BadRequest(f"'{type_[:64]}' tells of no deployment.", type=type_[:64])
        msgspec.convert(payload, EVENTS[type_])
        found.append((type_, payload))
    return found


def _illegal(mine: Deployed, wanted: str) -> Conflict:
    return Conflict(
        f"Version {mine.version} is {mine.state} and cannot go to {wanted} from there.",
        version=mine.version,
        state=mine.state,
    )


def drawn(found: Deployment, channel: str, run_id: str) -> str | None:
    """The version that serves a run of this channel, or None. A run draws once: what it draws
    follows from its id, which nobody chooses."""
    serving = found.serving(channel)
    if not serving:
        return None
    lot = hashlib.sha256(f"{run_id}\n{found.agent_id}\n{channel}".encode()).digest()
    share = int.from_bytes(lot[:8], "big") % 100
    for each in serving:
        if each.canary_percent == 100:
            break
        if share < each.canary_percent:
            return each.version
        share -= each.canary_percent
    return serving[-1].version
