"""core.ai.structuredOutput: a model call whose answer is JSON of a given shape.

An answer that is cut off or does not fit is asked for again, within a bound; a refusal is final,
for to look for words that the model does not refuse would be to talk it out of it.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.conformance.mock_model import Programs
from moot.core.agents import refusals
from moot.core.agents.model_key import ModelRequest, model_key, request_of
from moot.core.errors import BadRequest
from moot.core.json import schema
from moot.core.workflows.node_types import Completed, Failed, Kind, NodeError, NodeType, Outcome
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import refused

#: model calls of one attempt of the node
MOST_CALLS = 3
TRUNCATED = frozenset({"max_tokens", "length"})

#: why an answer cannot be taken -> what is said of it, without a word of the answer
PROBLEMS = {
    "truncation": "The answer was cut off.",
    "parse-error": "The answer is not JSON.",
    "schema-violation": "The answer does not fit its schema.",
}
CORRECTION = "Answer with JSON that fits the schema, and with nothing else."


class Config(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    provider: Literal["mock"]
    model: Annotated[str, Meta(min_length=1)]
    output_schema: dict[str, Any]
    messages: list[dict[str, Any]] | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    max_tokens: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    #: of the protocol's fixtures; how often is asked again is the host's bound
    retry_on_invalid_json: Annotated[int, Meta(ge=0)] = 0
    temperature: Any = UNSET
    top_p: Any = UNSET
    top_k: Any = UNSET
    seed: Any = UNSET
    stop: Any = UNSET
    tools: Any = UNSET
    safety_settings: Any = UNSET
    provider_options: Any = UNSET


#: fields of the config that go into the request as they are
PASSED = (
    "temperature", "topP", "topK", "seed", "stop", "tools", "safetySettings", "providerOptions"
)  # fmt: skip


def check(config: dict[str, Any]) -> str | None:
    try:
        found = msgspec.convert(config, Config)
        schema.check(found.output_schema)
    except msgspec.ValidationError as error:
        return str(error)
    except schema.SchemaError as error:
        return f"outputSchema cannot be used: {error}"
    return None


def first_request(config: dict[str, Any], inputs: dict[str, Any]) -> ModelRequest:
    """Raises BadRequest when there is nothing that could be asked."""
    given = {**config, **inputs}
    messages = given.get("messages")
    if messages is None and isinstance(given.get("prompt"), str):
        messages = [{"role": "user", "content": given["prompt"]}]
    if not messages:
        raise BadRequest("A model is asked with messages or a prompt.")
    asked = {name: config[name] for name in PASSED if name in config}
    asked |= {"provider": config["provider"], "model": config["model"], "messages": messages}
    asked["responseFormat"] = {"type": "json", "schema": config["outputSchema"]}
    if "maxTokens" in config:
        asked["maxOutputTokens"] = config["maxTokens"]
    return request_of(asked)


class _Talk:
    """One attempt of the node: a few calls at most."""

    def __init__(self, ctx: NodeContext, programs: Programs, request: ModelRequest) -> None:
        self._ctx, self._programs, self._request = ctx, programs, request
        self._schema: dict[str, Any] = ctx.config["outputSchema"]

    async def hold(self) -> Outcome:
        reason = ""
        for number in range(1, MOST_CALLS + 1):
            if reason:
                await self._again(number, reason)
            answer = await self._ctx.effect(model_key(self._request), self._call)
            if refusals.kind_of(answer) == "refusal":
                return self._refusal(answer)
            reason, value = self._read(answer)
            if not reason:
                return Completed({"output": value})
            if reason == "truncation":
                payload = {**self._named(), "stopReason": answer["stopReason"]}
                await self._ctx.agent.noted("envelope.truncated", payload)
        return self._exhausted(reason)

    async def _call(self, invocation_id: str) -> dict[str, Any]:
        """What the model says; of a refusal only what may be told goes any further."""
        ctx = self._ctx
        said = self._programs.answer(ctx.tenant, ctx.node_id, self._schema)
        if "refusalText" not in said and refusals.kind_of(said) == "valid":
            return said
        asked = [m.content for m in self._request.messages if isinstance(m.content, str)]
        text = refusals.without_echo(said.get("refusalText", ""), asked)
        return {"stopReason": said["stopReason"], "refusalText": text}

    def _read(self, answer: dict[str, Any]) -> tuple[str, Any]:
        """Why the answer cannot be taken, or "" and its value."""
        if answer["stopReason"] in TRUNCATED:
            return "truncation", None
        try:
            value = msgspec.json.decode(answer["content"])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return "parse-error", None
        return ("schema-violation" if schema.problems(self._schema, value) else ""), value

    async def _again(self, number: int, reason: str) -> None:
        """A longer answer where one was cut off; a word of correction where one did not fit."""
        said = {"nodeId": self._ctx.node_id, "attempt": number, "reason": reason}
        await self._ctx.agent.noted(
            "envelope.retry.attempted", {**said, "previousError": PROBLEMS[reason]}
        )
        asked = msgspec.to_builtins(self._request)
        if reason == "truncation":
            if "maxOutputTokens" in asked:
                asked["maxOutputTokens"] *= 2
        else:
            asked["messages"].append({"role": "user", "content": CORRECTION})
        self._request = request_of(asked)

    def _named(self) -> dict[str, Any]:
        asked = self._request
        return {"nodeId": self._ctx.node_id, "provider": asked.provider, "model": asked.model}

    def _refusal(self, answer: dict[str, Any]) -> Failed:
        error = NodeError(
            code="envelope_refused_by_provider",
            message="The model refused to answer.",
            retryable=False,
        )
        said = {**self._named(), "refusalText": answer.get("refusalText") or None}
        return Failed(error, because=(("envelope.refusal", said),))

    def _exhausted(self, reason: str) -> Failed:
        node_id = self._ctx.node_id
        cut = reason == "truncation"
        error = NodeError(
            code="envelope_truncation_unrecoverable" if cut else "envelope_payload_invalid",
            message=f"{PROBLEMS[reason]} The model was asked {MOST_CALLS} times.",
            retryable=False,
        )
        given_up = {"nodeId": node_id, "totalAttempts": MOST_CALLS, "finalReason": reason}
        cap = {"kind": "schema", "limit": MOST_CALLS, "observed": MOST_CALLS, "nodeId": node_id}
        told = {**given_up, "finalError": PROBLEMS[reason]}
        return Failed(error, because=(("envelope.retry.exhausted", told), ("cap.breached", cap)))


def type_with(programs: Programs) -> NodeType:
    """The node type of a server whose mock model is told what to say in these."""

    async def call_model(ctx: NodeContext) -> Outcome:
        try:
            request = first_request(ctx.config, ctx.inputs)
        except BadRequest as refusal:
            return refused(refusal.code, refusal.message)
        return await _Talk(ctx, programs, request).hold()

    return NodeType(
        type_id="core.ai.structuredOutput",
        kind=Kind.ACTIVITY,
        activity=call_model,
        check=check,
        rehearsed=programs.next,
    )
