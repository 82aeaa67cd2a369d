"""Seams of model calls: program the mock model, read the key of a call."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request
from moot.conformance.host import seams_of
from moot.conformance.mock_model import MOST_ANSWERS, MockAnswer
from moot.core.agents.model_key import RECIPE, model_key, parse_semantic_request


class MockAiProgram(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    node_id: Annotated[str, Meta(min_length=1, max_length=128)]
    program: Annotated[list[MockAnswer], Meta(min_length=1, max_length=MOST_ANSWERS)]


async def program_mock_ai(request: Request) -> Reply:
    body = await request.read(MockAiProgram)
    seams_of(request).programs.tell(request.caller.tenant, body.node_id, body.program)
    return Reply({"nodeId": body.node_id, "answers": len(body.program)})


async def read_cache_key(request: Request) -> Reply:
    """Return the key that a model call would be recorded under."""
    call = await request.read(dict[str, Any])
    return Reply({"cacheKey": model_key(parse_semantic_request(call)), "recipe": RECIPE})
