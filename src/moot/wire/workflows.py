"""Answers about workflows."""

from moot.wire.json import WireStruct


class WorkflowSummary(WireStruct, frozen=True):
    """A workflow in a list."""

    workflow_id: str
    version: str
    name: str
    description: str
    nodes: int
    digest: str
    source: str
    registered_at: str


class WorkflowList(WireStruct, frozen=True):
    """All registered workflows."""

    workflows: list[WorkflowSummary]


class WorkflowRegistration(WireStruct, frozen=True):
    """The answer to a registration."""

    workflow_id: str
    version: str
    digest: str
    warnings: list[str] = []


class WorkflowCheck(WireStruct, frozen=True):
    """The result of a check."""

    workflow_id: str
    ok: bool
    nodes: int
    warnings: list[str] = []
