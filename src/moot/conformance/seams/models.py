"""Seams for model calls of a host under trial: what the mock says, and the key of a call."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request
from moot.conformance.mock_model import MOST_ANSWERS, MockAnswer
from moot.core.agents.model_key import RECIPE, model_key, request_of


class Program(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    node_id: Annotated[str, Meta(min_length=1, max_length=128)]
    program: Annotated[list[MockAnswer], Meta(min_length=1, max_length=MOST_ANSWERS)]


async def program(request: Request) -> Reply:
    asked = await request.read(Program)
    request.services.programs.tell(request.caller.tenant, asked.node_id, asked.program)
    return Reply({"nodeId": asked.node_id, "answers": len(asked.program)})


async def cache_key(request: Request) -> Reply:
    """The key a model call would be recorded under."""
    asked = await request.read(dict[str, Any])
    return Reply({"cacheKey": model_key(request_of(asked)), "recipe": RECIPE})
