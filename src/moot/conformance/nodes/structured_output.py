"""core.ai.structuredOutput: a model call that must answer in JSON.

A test programs the answers of the mock model for each node. The node asks again, a few times, when
an answer is cut off or does not fit. A refusal is final: rewording the prompt would mean to argue
the model out of it.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.agents import refusals
from moot.core.agents.model_key import SemanticRequest, model_key, parse_semantic_request
from moot.core.errors import BadRequest
from moot.core.json import schema
from moot.core.payloads.agents import ModelAskedAgain, ModelGaveUp, ModelRefused, ModelTruncated
from moot.core.payloads.runs import CapBreached
from moot.core.workflows.node_types import Completed, Failed, NodeError, NodeKind, NodeType, Outcome
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import permanent_failure

#: Programmed nodes. The oldest program makes room.
MOST_PROGRAMS = 1000
MOST_ANSWERS = 100
MOST_ITEMS = 16
#: Model calls of one attempt.
MOST_CALLS = 3
TRUNCATED = frozenset({"max_tokens", "length"})

#: Reason -> message without any text of the answer.
PROBLEMS = {
    "truncation": "The answer was cut off.",
    "parse-error": "The answer is not JSON.",
    "schema-violation": "The answer does not fit its schema.",
}
CORRECTION = "Answer with JSON that fits the schema, and with nothing else."

Text = Annotated[str, Meta(max_length=100_000)]


class MockAnswer(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    content: Text
    stop_reason: Annotated[str, Meta(min_length=1, max_length=64)] = "end_turn"
    refusal_text: Text | None = None

    def as_answer(self) -> dict[str, object]:
        answer: dict[str, object] = {"content": self.content, "stopReason": self.stop_reason}
        return answer if self.refusal_text is None else {**answer, "refusalText": self.refusal_text}


class MockPrograms:
    """The programs of one server. They live as long as it does."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], list[MockAnswer]] = OrderedDict()
        #: Number of used answers.
        self._given: dict[tuple[str, str], int] = {}

    def tell(self, tenant: str, node_id: str, answers: list[MockAnswer]) -> None:
        """Answer the node's next calls with these, one after another."""
        key = (tenant, node_id)
        self._answers[key], self._given[key] = answers, 0
        self._answers.move_to_end(key)
        if len(self._answers) > MOST_PROGRAMS:
            oldest, _ = self._answers.popitem(last=False)
            del self._given[oldest]

    def next(self, tenant: str, node_id: str) -> dict[str, object] | None:
        key = (tenant, node_id)
        answers, number = self._answers.get(key, []), self._given.get(key, 0)
        if number >= len(answers):
            return None
        self._given[key] = number + 1
        return answers[number].as_answer()

    def answer(self, tenant: str, node_id: str, schema: Mapping[str, object]) -> dict[str, object]:
        """Return the next answer, then the last one again and again.

        An unprogrammed node gets a sample of the schema.
        """
        answer = self.next(tenant, node_id)
        if answer is not None:
            return answer
        answers = self._answers.get((tenant, node_id))
        return answers[-1].as_answer() if answers else _default_answer(schema)

    def clear(self) -> None:
        self._answers.clear()
        self._given.clear()


def _default_answer(schema: Mapping[str, object]) -> dict[str, object]:
    content = msgspec.json.encode(sample_value(schema)).decode()
    return {"content": content, "stopReason": "end_turn"}


def sample_value(schema: Any) -> Any:
    """Return a small value that fits the simple keywords of a schema."""
    if not isinstance(schema, dict):
        return None
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            shapes = schema.get("properties", {})
            return {name: sample_value(shapes.get(name, {})) for name in schema.get("required", [])}
        case "array":
            count = min(schema.get("minItems", 0), MOST_ITEMS)
            return [sample_value(schema.get("items", {}))] * count
        case kind:
            plain = {"string": "mock", "boolean": True, "integer": 0, "number": 0}
            return plain.get(kind) if isinstance(kind, str) else None


class StructuredOutputConfig(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    provider: Literal["mock"]
    model: Annotated[str, Meta(min_length=1)]
    output_schema: dict[str, object]
    messages: list[dict[str, object]] | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    max_tokens: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    #: From the protocol's fixtures. The host ignores it and uses its own limit.
    retry_on_invalid_json: Annotated[int, Meta(ge=0)] = 0
    temperature: Any = UNSET
    top_p: Any = UNSET
    top_k: Any = UNSET
    seed: Any = UNSET
    stop: Any = UNSET
    tools: Any = UNSET
    safety_settings: Any = UNSET
    provider_options: Any = UNSET


#: Config fields that go into the request unchanged.
PASSED_FIELDS = (
    "temperature", "topP", "topK", "seed", "stop", "tools", "safetySettings", "providerOptions"
)  # fmt: skip


def check_config(config: Mapping[str, object]) -> str | None:
    try:
        parsed = msgspec.convert(config, StructuredOutputConfig)
        schema.check_schema(parsed.output_schema)
    except msgspec.ValidationError as error:
        return str(error)
    except schema.SchemaError as error:
        return f"outputSchema cannot be used: {error}"
    return None


def first_request(config: Mapping[str, object], inputs: Mapping[str, object]) -> SemanticRequest:
    """Return the first model request.

    Raise BadRequest when there is neither a message nor a prompt.
    """
    fields = {**config, **inputs}
    messages = fields.get("messages")
    if messages is None and isinstance(fields.get("prompt"), str):
        messages = [{"role": "user", "content": fields["prompt"]}]
    if not messages:
        raise BadRequest("A model is asked with messages or a prompt.")
    request = {name: config[name] for name in PASSED_FIELDS if name in config}
    request |= {"provider": config["provider"], "model": config["model"], "messages": messages}
    request["responseFormat"] = {"type": "json", "schema": config["outputSchema"]}
    if "maxTokens" in config:
        request["maxOutputTokens"] = config["maxTokens"]
    return parse_semantic_request(request)


class RecordedMockAnswer(Struct, frozen=True, rename="camel"):
    """An answer of the mock model, as recorded. A refusal has no content."""

    stop_reason: str
    content: str = ""
    refusal_text: str = ""


class _StructuredCall:
    """One attempt of the node: a few model calls at most."""

    def __init__(self, ctx: NodeContext, programs: MockPrograms, request: SemanticRequest) -> None:
        self._ctx, self._programs, self._request = ctx, programs, request
        self._schema = ctx.config["outputSchema"]

    async def run(self) -> Outcome:
        reason = ""
        for number in range(1, MOST_CALLS + 1):
            if reason:
                await self._retry(number, reason)
            recorded = await self._ctx.effect(model_key(self._request), self._call)
            answer = msgspec.convert(recorded, RecordedMockAnswer)
            if refusals.answer_kind(recorded) == "refusal":
                return self._refusal(answer.refusal_text or None)
            reason, value = self._read(answer)
            if not reason:
                return Completed({"output": value})
            if reason == "truncation":
                cut = ModelTruncated(**self._model_fields(), stop_reason=answer.stop_reason)
                await self._ctx.agent.noted(cut)
        return self._exhausted(reason)

    async def _call(self, invocation_id: str) -> dict[str, object]:
        """Return the model's answer.

        Of a refusal, pass on only its text without echoes of the prompt.
        """
        ctx = self._ctx
        answer = self._programs.answer(ctx.tenant, ctx.node_id, self._schema)
        if "refusalText" not in answer and refusals.answer_kind(answer) == "valid":
            return answer
        prompts = [m.content for m in self._request.messages if isinstance(m.content, str)]
        text = refusals.remove_echo(str(answer.get("refusalText", "")), prompts)
        return {"stopReason": answer["stopReason"], "refusalText": text}

    def _read(self, answer: RecordedMockAnswer) -> tuple[str, object]:
        """Return why the answer is unusable, or "" and its value."""
        if answer.stop_reason in TRUNCATED:
            return "truncation", None
        try:
            value = msgspec.json.decode(answer.content)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return "parse-error", None
        return ("schema-violation" if schema.schema_problems(self._schema, value) else ""), value

    async def _retry(self, number: int, reason: str) -> None:
        """Prepare the next call: a higher token limit after a cut, a correction after a misfit."""
        node_id, error = self._ctx.node_id, PROBLEMS[reason]
        again = ModelAskedAgain(
            node_id=node_id, attempt=number, reason=reason, previous_error=error
        )
        await self._ctx.agent.noted(again)
        request = msgspec.to_builtins(self._request)
        if reason == "truncation":
            if "maxOutputTokens" in request:
                request["maxOutputTokens"] *= 2
        else:
            request["messages"].append({"role": "user", "content": CORRECTION})
        self._request = parse_semantic_request(request)

    def _model_fields(self) -> dict[str, str]:
        request = self._request
        return {"node_id": self._ctx.node_id, "provider": request.provider, "model": request.model}

    def _refusal(self, text: str | None) -> Failed:
        code, message = "envelope_refused_by_provider", "The model refused to answer."
        error = NodeError(code=code, message=message, retryable=False)
        return Failed(error, because=(ModelRefused(**self._model_fields(), refusal_text=text),))

    def _exhausted(self, reason: str) -> Failed:
        node_id = self._ctx.node_id
        cut = reason == "truncation"
        code = "envelope_truncation_unrecoverable" if cut else "envelope_payload_invalid"
        message = f"{PROBLEMS[reason]} The model was asked {MOST_CALLS} times."
        error = NodeError(code=code, message=message, retryable=False)
        given_up = ModelGaveUp(
            node_id=node_id,
            total_attempts=MOST_CALLS,
            final_reason=reason,
            final_error=PROBLEMS[reason],
        )
        cap = CapBreached(kind="schema", limit=MOST_CALLS, observed=MOST_CALLS, node_id=node_id)
        return Failed(error, because=(given_up, cap))


def structured_output_type(programs: MockPrograms) -> NodeType:
    """Return the node type of a server whose mock model follows these programs."""

    async def call_model(ctx: NodeContext) -> Outcome:
        try:
            request = first_request(ctx.config, ctx.inputs)
        except BadRequest as refusal:
            return permanent_failure(refusal.code, refusal.message)
        return await _StructuredCall(ctx, programs, request).run()

    return NodeType(
        type_id="core.ai.structuredOutput",
        kind=NodeKind.ACTIVITY,
        activity=call_model,
        check=check_config,
        rehearsed=programs.next,
    )
