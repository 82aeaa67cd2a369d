"""A moderator by the demo model: hears everybody, and says who wants what others do not."""

from typing import Any

from moot.agents.models.demo import DemoModel
from moot.agents.models.protocol import (
    AnswerFormat,
    DemoContext,
    HeardTurn,
    ModelRequest,
    ask_model,
    parse_structured_answer,
)

TEXT = {"type": "string"}
SYNTHESIS = {
    "type": "object",
    "properties": {
        "disagreements": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"by": TEXT, "text": TEXT},
                "required": ["by", "text"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["disagreements"],
}
CHOICE = {
    "type": "object",
    "properties": {
        "next": {"type": ["string", "null"], "enum": ["host:a", "host:bo", None]},
        "stop": {"type": "boolean"},
    },
    "required": ["next", "stop"],
}
CALLED = {"host:a": "Ada Long", "host:bo": "Bo"}


async def filled(schema: dict[str, Any], heard: list[HeardTurn], place: str = "") -> Any:
    context = DemoContext(
        agent="Mo", role="moderator", conversation_id=place, heard=tuple(heard), called=CALLED
    )
    form = AnswerFormat(schema=schema)
    asked = ModelRequest(model="demo", messages=(), context=context, response_format=form)
    return parse_structured_answer(asked, await ask_model(DemoModel(), asked))


async def test_disagreements_stand_in_a_form_under_the_names_of_who_has_them() -> None:
    heard = [
        HeardTurn(name="Ada", text="I doubt it."),
        HeardTurn(name="Cy", text="One figure decides."),
    ]
    found = (await filled(SYNTHESIS, heard))["disagreements"]
    assert [row["by"] for row in found] == ["Ada", "Cy"]
    assert "Cy does not insist" in found[0]["text"]


async def test_everybody_is_heard_before_a_moderator_ends_anything() -> None:
    heard = [HeardTurn(name="you", text="Do we raise prices?", kind="human")]
    for name, called in CALLED.items():
        for place in ("one", "two", "three"):
            assert await filled(CHOICE, heard, place) == {"next": name, "stop": False}
        heard.append(HeardTurn(name=called, text="Let us start small."))
    assert any([(await filled(CHOICE, heard, str(n)))["stop"] for n in range(20)])


async def test_who_is_quoted_calls_nobody_a_second_time() -> None:
    heard = (
        HeardTurn(name="you", text="Do we raise prices?", kind="human"),
        HeardTurn(name="you", text="Hold on, @bo!", kind="human"),
    )
    context = DemoContext(agent="Ada", role="skeptic", heard=heard)
    asked = ModelRequest(model="demo", messages=(), context=context)
    said = (await ask_model(DemoModel(), asked)).text
    assert "Hold on, bo" in said and "@" not in said
