"""Payloads of the events of agents' deployments."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from moot.core.payloads.base import Payload

VersionState = Literal["draft", "test", "staged", "active", "paused", "deprecated", "rolled-back"]
Percent = Annotated[int, Meta(ge=0, le=100)]
Version = Annotated[str, Meta(min_length=1, max_length=64)]


class DeploymentPayload(Payload, frozen=True, kw_only=True):
    agent_id: Annotated[str, Meta(min_length=1, max_length=256)]


class DeploymentPromoted(DeploymentPayload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "deployment.promoted"

    to_version: Version
    to_state: VersionState
    channel: str | None = None
    canary_percent: Percent | None = None
    from_version: Version | None = None
    eval_run_id: str | None = None


class DeploymentRolledBack(DeploymentPayload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "deployment.rolled-back"

    from_version: Version
    to_version: Version
    rollback_pointer: Version
    reason: str | None = None


class CanaryAdjusted(DeploymentPayload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "deployment.canary.adjusted"

    version: Version
    from_percent: Percent
    to_percent: Percent


class DeploymentStateChanged(DeploymentPayload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "deployment.state.changed"

    version: Version
    from_state: VersionState
    to_state: VersionState
