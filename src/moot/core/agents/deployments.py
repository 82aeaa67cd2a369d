"""Decide which version of an agent serves which runs.

Pure. A change returns the new deployment and its events, or is refused.
"""

import hashlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs
from msgspec.structs import replace

from moot.core.errors import BadRequest, Conflict
from moot.core.payloads.base import Payload
from moot.core.payloads.deployments import (
    CanaryAdjusted,
    DeploymentPayload,
    DeploymentPromoted,
    DeploymentRolledBack,
    DeploymentStateChanged,
    Percent,
    Version,
    VersionState,
)

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


#: a deployment after a change, and the payload of the event that tells of it
DeploymentStep = tuple[AgentDeployment, DeploymentPayload]


def change_deployment(deployment: AgentDeployment, change: DeploymentChange) -> DeploymentStep:
    """Return the new deployment and its event. Raise Conflict or BadRequest."""
    if change.channel is not None and change.channel not in BINDABLE_CHANNELS:
        raise BadRequest(
            f"'{change.channel}' is no channel to bind a version to;"
            f" use {', '.join(BINDABLE_CHANNELS)}.",
            field="channel",
        )
    return TRANSITIONS[change.transition](deployment, deployment.of(change.version), change)


def _promote(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> DeploymentStep:
    rebinds = version.state == "active" and change.channel is not None
    target = version.state if rebinds else NEXT_STATE.get(version.state)
    if target is None or change.to_state not in (None, target):
        raise _illegal_transition(version, change.to_state or "the next state")
    version = replace(version, state=target, eval_run_id=change.eval_run_id or version.eval_run_id)
    promoted = DeploymentPromoted(
        agent_id=deployment.agent_id, to_version=version.version, to_state=target
    )
    if target != "active":
        if change.canary_percent is not None or change.channel is not None:
            raise BadRequest("Only an active version serves a channel.", field="channel")
        return deployment.with_versions(version), promoted
    channel = change.channel or (version.channels[0] if version.channels else STABLE)
    before = [each for each in deployment.serving(channel) if each.version != version.version]
    percent = 100 if change.canary_percent is None else change.canary_percent
    version = replace(
        version,
        channels=tuple(dict.fromkeys((*version.channels, channel))),
        canary_percent=percent,
        rollback_pointer=before[-1].version if before else version.rollback_pointer,
    )
    promoted = replace(
        promoted,
        channel=channel,
        canary_percent=percent,
        from_version=before[-1].version if before else None,
        eval_run_id=version.eval_run_id,
    )
    return _share_channels(deployment.with_versions(version), version, (channel,)), promoted


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
) -> DeploymentStep:
    return _change_state(deployment, version, change, "paused", version.channels)


def _deprecate(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> DeploymentStep:
    return _change_state(deployment, version, change, "deprecated", ())


def _change_state(
    deployment: AgentDeployment,
    version: DeployedVersion,
    change: DeploymentChange,
    state: VersionState,
    channels: tuple[str, ...],
) -> DeploymentStep:
    if version.state != "active" or change.to_state not in (None, state):
        raise _illegal_transition(version, change.to_state or state)
    changed = DeploymentStateChanged(
        agent_id=deployment.agent_id,
        version=version.version,
        from_state=version.state,
        to_state=state,
    )
    return deployment.with_versions(replace(version, state=state, channels=channels)), changed


def _rollback(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> DeploymentStep:
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
    rollback = DeploymentRolledBack(
        agent_id=deployment.agent_id,
        from_version=version.version,
        to_version=pointer,
        rollback_pointer=pointer,
        reason=change.reason,
    )
    changed = deployment.with_versions(rolled_back, previous)
    return _share_channels(changed, previous, channels), rollback


def _adjust_canary(
    deployment: AgentDeployment, version: DeployedVersion, change: DeploymentChange
) -> DeploymentStep:
    if change.canary_percent is None:
        raise BadRequest("canaryPercent says which share of the runs.", field="canaryPercent")
    if version.state != "active" or not version.channels:
        raise Conflict(f"Version {version.version} serves no channel.", version=version.version)
    adjusted = CanaryAdjusted(
        agent_id=deployment.agent_id,
        version=version.version,
        from_percent=version.canary_percent,
        to_percent=change.canary_percent,
    )
    version = replace(version, canary_percent=change.canary_percent)
    deployment = deployment.with_versions(version)
    return _share_channels(deployment, version, version.channels), adjusted


TRANSITIONS = {
    "promote": _promote,
    "pause": _pause,
    "deprecate": _deprecate,
    "rollback": _rollback,
    "adjust-canary": _adjust_canary,
}


#: event type -> its payload
EVENT_PAYLOADS: dict[str, type[DeploymentPayload]] = {
    payload.event_type: payload
    for payload in (
        DeploymentPromoted,
        DeploymentStateChanged,
        DeploymentRolledBack,
        CanaryAdjusted,
    )
}


def check_deployment_events(raw: Any) -> list[Payload]:
    """Return the events of a change. Raise BadRequest when they are anything else."""
    events: list[Payload] = []
    for type_, fields in msgspec.convert(raw, list[tuple[str, dict[str, object]]]):
        payload_type = EVENT_PAYLOADS.get(type_)
        if payload_type is None:
            raise BadRequest(f"'{type_[:64]}' tells of no deployment.", type=type_[:64])
        known = {field.encode_name for field in structs.fields(payload_type)}
        if unknown := sorted(fields.keys() - known):
            raise BadRequest(f"'{type_}' has no field '{unknown[0][:64]}'.", type=type_)
        events.append(msgspec.convert(fields, payload_type))
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
