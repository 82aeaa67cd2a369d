"""The calls of ``moot models test``: one tiny one, and with --full one for each thing it can do."""

from typing import TYPE_CHECKING, Any

import click

from moot.agents.models import (
    Context,
    Message,
    ModelRequest,
    ResponseFormat,
    Text,
    Tool,
    ask,
    structured,
)
from moot.agents.models.protocol import Folding
from moot.cli.shared import output
from moot.clock import SystemClock
from moot.core.errors.models import ModelError, ModelWithoutSchemas

if TYPE_CHECKING:
    from moot.agents.models.registry import Book, Chosen

LONGEST = 64
#: enough for models that think before they speak
OUTPUT_TOKENS = 512

HELLO = Message(role="user", content="Say hello in three words.")
ASK_TOOL = Message(role="user", content="Use the tool 'clock' to find out what time it is.")
ASK_JSON = Message(role="user", content="Is 2 + 2 equal to 4? Answer as JSON with the field 'yes'.")
CLOCK = Tool(name="clock", description="The time now.", parameters={"type": "object"})
YES = ResponseFormat(
    schema={
        "type": "object",
        "properties": {"yes": {"type": "boolean"}},
        "required": ["yes"],
        "additionalProperties": False,
    }
)


async def probe(book: "Book", reference: str, full: bool) -> dict[str, Any]:
    """What the model did. Raises ModelError when it did not answer at all."""
    # one attempt: who tests wants to see what is wrong now
    chosen = book.choose(reference, attempts=1)
    try:
        found = await _hello(chosen)
        if full:
            found["tools"] = await _tools(chosen)
            found["json"] = await _json(book, chosen)
    finally:
        await book.aclose()
    return found


def _request(message: Message, **more: Any) -> ModelRequest:
    return ModelRequest(
        model="", messages=(message,), max_output_tokens=OUTPUT_TOKENS, context=Context(), **more
    )


async def _hello(chosen: "Chosen") -> dict[str, Any]:
    clock = SystemClock()
    began = clock.millis()
    folding, pieces, first = Folding(""), 0, None
    async for piece in chosen.stream(_request(HELLO)):
        folding.take(piece)
        if isinstance(piece, Text):
            pieces += 1
            first = first or clock.millis() - began
    answer = folding.answer()
    cost = chosen.cost(answer.usage)
    return {
        "reference": chosen.reference.text,
        "model": answer.model,
        "finish": answer.finish,
        "said": answer.refusal or answer.text,
        "firstWordMs": first,
        "totalMs": clock.millis() - began,
        "streams": pieces > 1,
        "inputTokens": answer.usage.input_tokens if answer.usage else None,
        "outputTokens": answer.usage.output_tokens if answer.usage else None,
        "cost": f"{cost.amount:f} {cost.currency}" if cost else None,
    }


async def _tools(chosen: "Chosen") -> str:
    if chosen.provider == "demo":
        return "only by a script"
    try:
        answer = await ask(chosen, _request(ASK_TOOL, tools=(CLOCK,)))
    except ModelError as error:
        return error.message
    return "yes" if answer.tool_calls else "it did not use the tool"


async def _json(book: "Book", chosen: "Chosen") -> str:
    request = _request(ASK_JSON, response_format=YES)
    try:
        try:
            answer = await ask(chosen, request)
        except ModelWithoutSchemas:
            answer = await ask(chosen, request)  # in words
        structured(request, answer)
    except ModelError as error:
        return error.message
    model = book.opened(chosen.reference.name)
    return "emulated" if getattr(model, "json", "native") == "prompt" else "yes"


def show(found: dict[str, Any]) -> None:
    tokens = (
        f"{found['inputTokens']} + {found['outputTokens']} tokens"
        if found["inputTokens"] is not None
        else "tokens not told"
    )
    times = output.span(found["totalMs"] / 1000)
    good, bad = click.style("✓", fg="green"), click.style("✗", fg="red")
    parts = [f"{good} {found['reference']} answered in {times}", tokens]
    if found["cost"]:
        parts.append(found["cost"])
    click.echo(" · ".join(parts))
    click.echo(f"{good if found['streams'] else bad} streams")
    if "tools" in found:
        mark = good if found["tools"] in ("yes", "only by a script") else bad
        click.echo(output.line(f"{mark} tools: {found['tools']}"))
        words = {"emulated": "✗ json mode (will be emulated)", "yes": f"{good} json mode"}
        click.echo(words.get(found["json"], output.line(f"{bad} json: {found['json']}")))
    said = output.brief(found["said"], LONGEST)
    click.echo(f"  {output.line(found['model'])} says: {said}")
