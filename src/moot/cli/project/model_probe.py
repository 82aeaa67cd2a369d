"""The calls of ``moot models test``: a tiny one, and with --full one per feature."""

from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from moot.agents.models.protocol import (
    AnswerFolder,
    AnswerFormat,
    DemoContext,
    ModelMessage,
    ModelRequest,
    ModelTool,
    TextPiece,
    ask_model,
    parse_structured_answer,
)
from moot.cli.shared import output
from moot.clock import SystemClock
from moot.core.errors.models import ModelError, ModelWithoutSchemas

if TYPE_CHECKING:
    from moot.agents.models.registry import ChosenModel, ModelRegistry

LONGEST = 64
#: enough for models that reason before they answer
OUTPUT_TOKENS = 512

HELLO = ModelMessage(role="user", content="Say hello in three words.")
ASK_TOOL = ModelMessage(role="user", content="Use the tool 'clock' to find out what time it is.")
ASK_JSON = ModelMessage(
    role="user", content="Is 2 + 2 equal to 4? Answer as JSON with the field 'yes'."
)
CLOCK = ModelTool(name="clock", description="The time now.", parameters={"type": "object"})
YES = AnswerFormat(
    schema={
        "type": "object",
        "properties": {"yes": {"type": "boolean"}},
        "required": ["yes"],
        "additionalProperties": False,
    }
)


class ProbeResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The findings of a test; those about tools and JSON only of a full one."""

    reference: str
    model: str
    finish: str
    said: str
    first_word_ms: int | None
    total_ms: int
    streams: bool
    input_tokens: int | None
    output_tokens: int | None
    cost: str | None
    tools: str | UnsetType = UNSET
    json: str | UnsetType = UNSET


async def probe_model(registry: "ModelRegistry", reference: str, full: bool) -> ProbeResult:
    """Return the findings. Raise ModelError when the model did not answer at all."""
    # one attempt, because a test should show what is wrong now
    chosen = registry.choose(reference, attempts=1)
    try:
        result = await _probe_answer(chosen)
        if full:
            tools, json = await _probe_tools(chosen), await _probe_json(registry, chosen)
            result = replace(result, tools=tools, json=json)
    finally:
        await registry.aclose()
    return result


def _probe_request(message: ModelMessage, **more: Any) -> ModelRequest:
    return ModelRequest(
        model="",
        messages=(message,),
        max_output_tokens=OUTPUT_TOKENS,
        context=DemoContext(),
        **more,
    )


async def _probe_answer(chosen: "ChosenModel") -> ProbeResult:
    clock = SystemClock()
    began = clock.millis()
    folding, pieces, first_word_ms = AnswerFolder(""), 0, None
    async for piece in chosen.stream(_probe_request(HELLO)):
        folding.take(piece)
        if isinstance(piece, TextPiece):
            pieces += 1
            first_word_ms = first_word_ms or clock.millis() - began
    answer = folding.answer()
    cost = chosen.cost(answer.usage)
    return ProbeResult(
        reference=chosen.reference.text,
        model=answer.model,
        finish=answer.finish,
        said=answer.refusal or answer.text,
        first_word_ms=first_word_ms,
        total_ms=clock.millis() - began,
        streams=pieces > 1,
        input_tokens=answer.usage.input_tokens if answer.usage else None,
        output_tokens=answer.usage.output_tokens if answer.usage else None,
        cost=f"{cost.amount:f} {cost.currency}" if cost else None,
    )


async def _probe_tools(chosen: "ChosenModel") -> str:
    if chosen.provider == "demo":
        return "only by a script"
    try:
        answer = await ask_model(chosen, _probe_request(ASK_TOOL, tools=(CLOCK,)))
    except ModelError as error:
        return error.message
    return "yes" if answer.tool_calls else "it did not use the tool"


async def _probe_json(registry: "ModelRegistry", chosen: "ChosenModel") -> str:
    request = _probe_request(ASK_JSON, response_format=YES)
    try:
        try:
            answer = await ask_model(chosen, request)
        except ModelWithoutSchemas:
            answer = await ask_model(chosen, request)  # with the schema in words
        parse_structured_answer(request, answer)
    except ModelError as error:
        return error.message
    model = registry.opened(chosen.reference.name)
    return "emulated" if getattr(model, "json", "native") == "prompt" else "yes"


def print_probe(result: ProbeResult) -> None:
    tokens = "tokens not told"
    if result.input_tokens is not None:
        tokens = f"{result.input_tokens} + {result.output_tokens} tokens"
    times = output.format_span(result.total_ms / 1000)
    good, bad = click.style("✓", fg="green"), click.style("✗", fg="red")
    parts = [f"{good} {result.reference} answered in {times}", tokens]
    click.echo(" · ".join([*parts, *([result.cost] if result.cost else [])]))
    click.echo(f"{good if result.streams else bad} streams")
    if result.tools is not UNSET and result.json is not UNSET:
        mark = good if result.tools in ("yes", "only by a script") else bad
        click.echo(output.safe_line(f"{mark} tools: {result.tools}"))
        words = {"emulated": "✗ json mode (will be emulated)", "yes": f"{good} json mode"}
        click.echo(words.get(result.json, output.safe_line(f"{bad} json: {result.json}")))
    text = output.shorten(result.said, LONGEST)
    click.echo(f"  {output.safe_line(result.model)} says: {text}")
