"""Parse a supervisor's decisions, including their older spellings."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.errors import BadRequest
from moot.core.payloads.supervisors import MetCriterion, SupervisorDecision

Confidence = Annotated[float, Meta(ge=0, le=1)]
Text = Annotated[str, Meta(min_length=1, max_length=20_000)]


class NextWorker(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    kind: str
    next_worker_ids: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=256)]], Meta(min_length=1, max_length=256)
    ]
    confidence: Confidence | UnsetType = UNSET


class AskUser(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: str
    prompt: Text


class Terminate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    kind: str
    reason: Text | UnsetType = UNSET
    confidence: Confidence | UnsetType = UNSET
    success_criteria: list[MetCriterion] | UnsetType = UNSET


SHAPES: dict[str, type[Struct]] = {
    "next-worker": NextWorker,
    "ask-user": AskUser,
    "terminate": Terminate,
}

#: kinds of early protocol versions -> how the question is routed
ROUTINGS = {"clarify": "clarification", "escalate": "approval"}


def parse_decision(raw: Any) -> tuple[SupervisorDecision, str | None]:
    """Return the decision to record, and the routing of its question if its kind implies one.

    Raise BadRequest for anything else.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
        raise BadRequest("A decision is an object with a kind.", field="decision.kind")
    kind = raw["kind"]
    if kind in ROUTINGS:
        prompt = raw.get("prompt") or raw.get("reason") or "How shall this go on?"
        return SupervisorDecision(kind="ask-user", prompt=str(prompt)), ROUTINGS[kind]
    shape = SHAPES.get(kind)
    if shape is None:
        kinds = ", ".join([*SHAPES, *ROUTINGS])
        raise BadRequest(f"'{kind}' is no decision; use {kinds}.", field="decision.kind")
    try:
        decision = msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The decision does not fit: {error}", field="decision") from None
    return msgspec.convert(msgspec.to_builtins(decision), SupervisorDecision), None
