"""Payloads of the events of agents' deployments."""

from typing import ClassVar

from moot.core.payloads.base import Payload


class DeploymentPromoted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "deployment.promoted"

    agent_id: str
    to_version: str
    to_state: str
    channel: str | None = None
    canary_percent: int | None = None
    from_version: str | None = None
    eval_run_id: str | None = None


class DeploymentRolledBack(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "deployment.rolled-back"

    agent_id: str
    from_version: str
    to_version: str
    rollback_pointer: str
    reason: str | None = None


class CanaryAdjusted(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "deployment.canary.adjusted"

    agent_id: str
    version: str
    from_percent: int
    to_percent: int


class DeploymentStateChanged(Payload, frozen=True, kw_only=True):
    event_type: ClassVar[str] = "deployment.state.changed"

    agent_id: str
    version: str
    from_state: str
    to_state: str
