"""Decide which version of an agent serves which runs.

Pure. A change returns the new deployment and its events, or is refused.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.core.catalogue import PAYLOADS
from moot.core.errors import BadRequest, Conflict
from moot.core.payloads.base import Payload
from moot.core.payloads.deployments import (
    CanaryAdjusted,
    DeploymentPromoted,
    DeploymentRolledBack,
    DeploymentStateChanged,
)

VersionState = Literal["draft", "test", "staged", "active", "paused", "deprecated", "rolled-back"]
STATES: tuple[VersionState, ...] = (
    "draft", "test", "staged", "active", "paused", "deprecated", "rolled-back"
)  # fmt: skip

#: the state after a promotion, by the state before it
NEXT_STATE: dict[VersionState, VersionState] = {
    "draft": "test", "test": "staged", "staged": "active", "paused": "active"
}  # fmt: skip

STABLE, LATEST = "stable", "latest"
#: channels that a version can be bound to; ``latest`` is always the newest active version
BINDABLE_CHANNELS = (STABLE, "canary")
CHANNELS = (*BINDABLE_CHANNELS, LATEST)

Percent = Annotated[int, Meta(ge=0, le=100)]
Version = Annotated[str, Meta(min_length=1, max_length=64)]


class DeploymentChange(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A requested change, as the protocol defines it."""

    version: Version
    transition: Literal["promote", "pause", "deprecate", "rollback", "adjust-canary"]
    to_state: VersionState | None = None
    channel: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    canary_percent: Percent | None = None
    eval_run_id: Annotated[str, Meta(min_length=1)] | None = None
    reason: Annotated[str, Meta(min_length=1, max_length=512)] | None = None


class DeployedVersion(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One version of an agent."""

    version: str
    state: VersionState = "draft"
    channels: tuple[str, ...] = ()
    canary_percent: int = 100
    rollback_pointer: str | None = None
    eval_run_id: str | None = None


class AgentDeployment(Struct, frozen=True, kw_only=True, rename="camel"):
    """The versions of one agent, in the order in which they were first promoted."""

    agent_id: str
    versions: dict[str, DeployedVersion] = {}

    def of(self, version: str) -> DeployedVersion:
        return self.versions.get(version) or DeployedVersion(version=version)

    def with_versions(self, *changed: DeployedVersion) -> "AgentDeployment":
        return replace(self, versions={**self.versions, **{each.version: each for each in changed}})

    def serving(self, channel: str) -> list[DeployedVersion]:
        """Return the active versions of a channel; those with a share of the runs come first."""
        active = [
            each
            for each in self.versions.values()
            if each.state == "active" and (channel == LATEST or channel in each.channels)
        ]
        if channel == LATEST:
            return active[-1:]
        return sorted(active, key=lambda each: each.canary_percent)


#: type and payload
DeploymentEvent = tuple[str, dict[str, Any]]


def change_deployment(
    deployment: AgentDeployment, change: DeploymentChange
) -> tuple[AgentDeployment, list[DeploymentEvent]]:
    """Return the new deployment and its events. Raise Conflict or BadRequest."""
    if change.channel is not None and change.channel not in BINDABLE_CHANNELS:
        raise BadRequest(
            f"'{change.channel}' is no channel to bind a version to;"
            f" use {', '.join(BINDABLE_CHANNELS)}.",
            field="channel",
        )
    return TRANSITIONS[change.transition](deployment, deployment.of(change.version), change)


def _promote(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> tuple[AgentDeployment, list[DeploymentEvent]]:
    rebinds = version.state == "active" and change.channel is not None
    target = version.state if rebinds else NEXT_STATE.get(version.state)
    if target is None or change.to_state not in (None, target):
        raise _illegal_transition(version, change.to_state or "the next state")
    version = replace(version, state=target, eval_run_id=change.eval_run_id or version.eval_run_id)
    payload: dict[str, Any] = {"toVersion": version.version, "toState": target}
    if target != "active":
        if change.canary_percent is not None or change.channel is not None:
            raise BadRequest("Only an active version serves a channel.", field="channel")
        return deployment.with_versions(version), [
            _deployment_event(DeploymentPromoted.event_type, deployment, payload)
        ]
    channel = change.channel or (version.channels[0] if version.channels else STABLE)
    before = [each for each in deployment.serving(channel) if each.version != version.version]
    percent = 100 if change.canary_percent is None else change.canary_percent
    version = replace(
        version,
        channels=tuple(dict.fromkeys((*version.channels, channel))),
        canary_percent=percent,
        rollback_pointer=before[-1].version if before else version.rollback_pointer,
    )
    payload |= {"channel": channel, "canaryPercent": percent}
    if before:
        payload["fromVersion"] = before[-1].version
    if version.eval_run_id is not None:
        payload["evalRunId"] = version.eval_run_id
    return _share_channels(deployment.with_versions(version), version, (channel,)), [
        _deployment_event(DeploymentPromoted.event_type, deployment, payload)
    ]


def _share_channels(
    deployment: AgentDeployment, version: DeployedVersion, channels: tuple[str, ...]
) -> AgentDeployment:
    """Take a channel from the others when this version gets every run.

    Raise Conflict when the shares would exceed all runs.
    """
    for channel in channels:
        others = [each for each in deployment.serving(channel) if each.version != version.version]
        if version.canary_percent == 100:
            whole = [each for each in others if each.canary_percent == 100]
            deployment = deployment.with_versions(
                *(_leave_channel(each, channel) for each in whole)
            )
            continue
        shared = sum(each.canary_percent for each in others if each.canary_percent < 100)
        if shared + version.canary_percent > 100:
            raise Conflict(f"More than all runs of '{channel}' would be shared out.")
    return deployment


def _leave_channel(version: DeployedVersion, channel: str) -> DeployedVersion:
    return replace(version, channels=tuple(each for each in version.channels if each != channel))


def _pause(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> tuple[AgentDeployment, list[DeploymentEvent]]:
    return _change_state(deployment, version, change, "paused", version.channels)


def _deprecate(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> tuple[AgentDeployment, list[DeploymentEvent]]:
    return _change_state(deployment, version, change, "deprecated", ())


def _change_state(
    deployment: AgentDeployment,
    version: DeployedVersion,
    change: DeploymentChange,
    state: VersionState,
    channels: tuple[str, ...],
) -> tuple[AgentDeployment, list[DeploymentEvent]]:
    if version.state != "active" or change.to_state not in (None, state):
        raise _illegal_transition(version, change.to_state or state)
    payload = {"version": version.version, "fromState": version.state, "toState": state}
    moved = replace(version, state=state, channels=channels)
    return deployment.with_versions(moved), [
        _deployment_event(DeploymentStateChanged.event_type, deployment, payload)
    ]


def _rollback(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> tuple[AgentDeployment, list[DeploymentEvent]]:
    pointer = version.rollback_pointer
    if version.state != "active" or change.to_state not in (None, "rolled-back"):
        raise _illegal_transition(version, "rolled-back")
    if pointer is None:
        raise Conflict(
            f"Version {version.version} took nobody's place; there is nothing to go back to.",
            version=version.version,
        )
    previous = deployment.of(pointer)
    channels = tuple(dict.fromkeys((*previous.channels, *version.channels)))
    previous = replace(previous, state="active", channels=channels, canary_percent=100)
    rolled_back = replace(version, state="rolled-back", channels=())
    payload: dict[str, Any] = {
        "fromVersion": version.version,
        "toVersion": pointer,
        "rollbackPointer": pointer,
    }
    if change.reason is not None:
        payload["reason"] = change.reason
    return _share_channels(deployment.with_versions(rolled_back, previous), previous, channels), [
        _deployment_event(DeploymentRolledBack.event_type, deployment, payload)
    ]


def _adjust_canary(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> tuple[AgentDeployment, list[DeploymentEvent]]:
    if change.canary_percent is None:
        raise BadRequest("canaryPercent says which share of the runs.", field="canaryPercent")
    if version.state != "active" or not version.channels:
        raise Conflict(f"Version {version.version} serves no channel.", version=version.version)
    payload = {
        "version": version.version,
        "fromPercent": version.canary_percent,
        "toPercent": change.canary_percent,
    }
    version = replace(version, canary_percent=change.canary_percent)
    return (
        _share_channels(deployment.with_versions(version), version, version.channels),
        [_deployment_event(CanaryAdjusted.event_type, deployment, payload)],
    )


TRANSITIONS = {
    "promote": _promote,
    "pause": _pause,
    "deprecate": _deprecate,
    "rollback": _rollback,
    "adjust-canary": _adjust_canary,
}


def _deployment_event(
    type_: str, deployment: AgentDeployment, payload: Mapping[str, object]
) -> DeploymentEvent:
    return type_, {"agentId": deployment.agent_id, **payload}


class _DeploymentPayload(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    agent_id: Annotated[str, Meta(min_length=1, max_length=256)]


class _PromotedPayload(_DeploymentPayload, frozen=True, kw_only=True):
    to_version: Version
    to_state: VersionState
    channel: str | None = None
    canary_percent: Percent | None = None
    from_version: Version | None = None
    eval_run_id: str | None = None


class _StateChangedPayload(_DeploymentPayload, frozen=True, kw_only=True):
    version: Version
    from_state: VersionState
    to_state: VersionState


class _RolledBackPayload(_DeploymentPayload, frozen=True, kw_only=True):
    from_version: Version
    to_version: Version
    rollback_pointer: Version
    reason: str | None = None


class _CanaryAdjustedPayload(_DeploymentPayload, frozen=True, kw_only=True):
    version: Version
    from_percent: Percent
    to_percent: Percent


#: event type -> its payload
EVENT_PAYLOADS: dict[str, type[_DeploymentPayload]] = {
    DeploymentPromoted.event_type: _PromotedPayload,
    DeploymentStateChanged.event_type: _StateChangedPayload,
    DeploymentRolledBack.event_type: _RolledBackPayload,
    CanaryAdjusted.event_type: _CanaryAdjustedPayload,
}


def check_deployment_events(raw: Any) -> list[Payload]:
    """Return the events of a change. Raise BadRequest when they are anything else."""
    events: list[Payload] = []
    for type_, payload in msgspec.convert(raw, list[tuple[str, dict[str, Any]]]):
        if type_ not in EVENT_PAYLOADS:
            raise BadRequest(f"'{type_[:64]}' tells of no deployment.", type=type_[:64])
        msgspec.convert(payload, EVENT_PAYLOADS[type_])
        events.append(msgspec.convert(payload, PAYLOADS[type_]))
    return events


def _illegal_transition(version: DeployedVersion, target: str) -> Conflict:
    return Conflict(
        f"Version {version.version} is {version.state} and cannot go to {target} from there.",
        version=version.version,
        state=version.state,
    )


def draw_version(deployment: AgentDeployment, channel: str, run_id: str) -> str | None:
    """Return the version that serves a run of this channel, or None.

    The run's id decides, so that a run always draws the same version.
    """
    serving = deployment.serving(channel)
    if not serving:
        return None
    digest = hashlib.sha256(f"{run_id}\n{deployment.agent_id}\n{channel}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") % 100
    for each in serving:
        if each.canary_percent == 100:
            break
        if share < each.canary_percent:
            return each.version
        share -= each.canary_percent
    return serving[-1].version
