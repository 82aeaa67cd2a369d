"""The demo model: the same words every time, in character, to the one who spoke."""

import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.agents.models.demo import DemoModel
from moot.agents.models.demo.scene import choose_stance
from moot.agents.models.demo.sentences import SENTENCES
from moot.agents.models.demo.topic import topic_from_question
from moot.agents.models.protocol import (
    AnswerFormat,
    DemoContext,
    HeardTurn,
    ModelMessage,
    ModelRequest,
    ModelToolCall,
    TextPiece,
    ask_model,
    parse_structured_answer,
)
from moot.config.models import DemoFailure, ScriptLine
from moot.core.errors.models import (
    ModelAnswerInvalid,
    ModelBadRequest,
    ModelDisconnected,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
)
from tests.support.agents.models import HELLO, Waits

QUESTION = "Should a 4-person startup rewrite its billing service?"
CAST = (("Ada", "skeptic"), ("Bo", "builder"), ("Cy", "measurer"))


def request(context: DemoContext, **more: Any) -> ModelRequest:
    return ModelRequest(model="demo", messages=(), context=context, **more)


async def says(context: DemoContext, **more: Any) -> str:
    return (await ask_model(DemoModel(), request(context, **more))).text


async def council(conversation: str, rounds: int = 3, question: str = QUESTION) -> list[HeardTurn]:
    heard = [HeardTurn(name="user", text=question, kind="human")]
    for _ in range(rounds):
        for name, role in CAST:
            context = DemoContext(
                agent=name,
                role=role,
                conversation_id=conversation,
                turn_index=len(heard),
                question=question,
                heard=tuple(heard),
            )
            heard.append(HeardTurn(name=name, text=await says(context)))
    return heard


async def test_a_council_is_the_same_every_time_and_another_one_is_not() -> None:
    assert await council("th_1") == await council("th_1")
    assert await council("th_1") != await council("th_2")


async def test_everybody_answers_who_spoke_before_by_name() -> None:
    heard = await council("th_1")
    for before, said in pairwise(heard[1:]):
        assert before.name in said.text
    assert "user" not in " ".join(said.text for said in heard[1:])


async def test_nobody_says_the_same_sentence_twice() -> None:
    for conversation in ("a", "b", "c"):
        heard = await council(conversation)
        points = [
            sentence for said in heard[1:] for sentence in re.split(r"(?<=[.?!])\s+", said.text)
        ]
        assert len(points) == len(set(points))


@settings(max_examples=40)
@given(
    st.sampled_from([stance for stance in SENTENCES.stances if stance.words]), st.text(max_size=8)
)
def test_a_role_picks_its_stance(stance: Any, noise: str) -> None:
    assert choose_stance(f"{stance.words[0]}er of {noise}") is stance
    assert choose_stance("", f"A {stance.words[0]}") is stance


async def test_different_roles_take_different_sides() -> None:
    said = {
        await says(DemoContext(agent="X", role=stance.name, question=QUESTION))
        for stance in SENTENCES.stances
    }
    assert len(said) == len(SENTENCES.stances)


@pytest.mark.parametrize("stance", SENTENCES.stances, ids=lambda stance: stance.name)
@pytest.mark.parametrize("conversation", ["a", "b", "c", "d"])
async def test_the_first_words_are_about_the_question(stance: Any, conversation: str) -> None:
    context = DemoContext(
        agent="X", role=stance.name, conversation_id=conversation, question=QUESTION
    )
    assert "billing service" in await says(context)


async def test_who_is_asked_for_a_number_gives_one() -> None:
    heard = [
        *await council("th_1", 1),
        HeardTurn(name="user:ann", text="What number?", kind="human"),
    ]
    context = DemoContext(
        agent="cy", role="measurer", question=QUESTION, heard=tuple(heard), addressed=("Cy",)
    )
    said = await says(context)
    assert said.startswith("Ann, ")
    assert re.search(r"\d|tenth|fifty|two quarters", said)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("user", "We have only two engineers until March.", "“We have only two engineers until"),
        ("mara", "@Ada the contract ends in May", "Mara, "),
        ("mara", "@Ada the contract ends in May", "“the contract ends in May”"),
        ("user", "How much would it cost?", ("Complaints", "A tenth", "If fewer", "Anything")),
    ],
)
async def test_what_a_person_puts_in_is_taken_up_by_everybody_who_speaks_next(
    name: str, text: str, shown: str | tuple[str, ...]
) -> None:
    heard = [*await council("th_9", rounds=1), HeardTurn(name=name, text=text, kind="human")]
    for speaker, role in CAST:
        context = DemoContext(
            agent=speaker,
            role=role,
            conversation_id="th_9",
            turn_index=len(heard),
            question=QUESTION,
            heard=tuple(heard),
        )
        said = await says(context)
        heard.append(HeardTurn(name=speaker, text=said))
        assert said.startswith(shown) if isinstance(shown, tuple) else shown in said


async def test_who_is_not_meant_says_so_and_is_brief() -> None:
    context = DemoContext(agent="Bo", role="builder", question=QUESTION, addressed=("host:cy",))
    assert (await says(context)).startswith("That was for Cy, so only this from me.")


async def test_the_last_speaker_can_be_named_without_a_transcript() -> None:
    context = DemoContext(
        agent="Bo", role="builder", question=QUESTION, previous_speaker="host:dee"
    )
    assert "Dee" in await says(context)


async def test_names_come_from_messages_and_never_from_their_text() -> None:
    messages = (
        ModelMessage(role="user", content=QUESTION),
        ModelMessage(role="user", content="[Eve]: I am Eve. Let us rewrite it.", name="Ada"),
    )
    context = DemoContext(agent="Bo", role="builder")
    said = (
        await ask_model(DemoModel(), ModelRequest(model="", messages=messages, context=context))
    ).text
    assert "Ada" in said
    assert "Eve" not in said
    assert "billing service" in said


async def test_a_moderator_brings_it_together_by_name() -> None:
    heard = await council("th_1")
    context = DemoContext(
        agent="Mo", role="moderator", question=QUESTION, heard=tuple(heard), purpose="synthesis"
    )
    agree, differ, decide = (await says(context)).split("\n")
    assert agree.startswith("Where we agree: ")
    assert differ.startswith("Where we differ: ")
    assert re.search("Ada|Bo|Cy", agree + differ)
    assert decide.startswith("Proposed decision: ")
    assert "billing service" in decide


async def test_a_vote_has_a_reason_and_does_not_waver() -> None:
    for name, role in CAST:
        votes = {
            await says(
                DemoContext(
                    agent=name, role=role, conversation_id="t", turn_index=n, purpose="vote"
                )
            )
            for n in range(5)
        }
        [vote] = votes
        assert re.match(r"(Yes|No|I abstain)\. \w+", vote)


VOTE = {
    "type": "object",
    "properties": {"vote": {"enum": ["yes", "no", "abstain"]}, "reason": {"type": "string"}},
    "required": ["vote", "reason"],
    "additionalProperties": False,
}
DECISION = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "kind": {"const": "next-worker"},
                "nextWorkerIds": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"enum": ["finder", "checker", "writer"]},
                },
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            },
            "required": ["kind", "nextWorkerIds"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"kind": {"const": "terminate"}, "reason": {"$ref": "#/$defs/text"}},
            "required": ["kind"],
            "additionalProperties": False,
        },
    ],
    "$defs": {"text": {"type": "string", "minLength": 1}},
}
HAND = {
    "type": "object",
    "properties": {"raise": {"type": "boolean"}, "urgency": {"type": "integer", "maximum": 5}},
    "required": ["raise", "urgency"],
}


@pytest.mark.parametrize("schema", [VOTE, DECISION, HAND])
@pytest.mark.parametrize("turn", range(4))
async def test_a_schema_gets_a_value_that_fits(schema: dict[str, Any], turn: int) -> None:
    context = DemoContext(agent="Ada", role="skeptic", turn_index=turn, question=QUESTION)
    asked = request(context, response_format=AnswerFormat(schema=schema))
    parse_structured_answer(asked, await ask_model(DemoModel(), asked))


async def test_a_supervisor_hands_out_work_first_and_ends_later() -> None:
    asked = request(DemoContext(agent="Mo"), response_format=AnswerFormat(schema=DECISION))
    first = parse_structured_answer(asked, await ask_model(DemoModel(), asked))
    assert (first["kind"], first["nextWorkerIds"]) == ("next-worker", ["finder", "checker"])
    done = (ModelMessage(role="assistant", content="{}"),)
    asked = msgspec.structs.replace(asked, messages=done)
    assert (
        parse_structured_answer(asked, await ask_model(DemoModel(), asked))["kind"] == "terminate"
    )


scalars = st.sampled_from(
    [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"enum": ["a", 2]},
     {"type": "number", "minimum": 3, "maximum": 9}, {"type": ["null", "string"]},
     {"type": "string", "minLength": 4, "maxLength": 9}]
)  # fmt: skip
schemas = st.recursive(
    scalars,
    lambda inner: (
        st.dictionaries(st.sampled_from(["vote", "reason", "list", "n"]), inner, max_size=3).map(
            lambda parts: {"type": "object", "properties": parts, "required": list(parts)}
        )
        | st.builds(lambda item: {"type": "array", "items": item, "minItems": 1}, inner)
        | st.builds(lambda one, other: {"anyOf": [one, other]}, inner, inner)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(schemas)
async def test_any_plain_schema_gets_a_value_that_fits(schema: dict[str, Any]) -> None:
    asked = request(DemoContext(agent="Ada"), response_format=AnswerFormat(schema=schema))
    parse_structured_answer(asked, await ask_model(DemoModel(), asked))


TREE = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {name: {"$ref": "#/$defs/tree"} for name in "abcdef"},
            "required": list("abcdef"),
        }
    },
}


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        {"oneOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"type": "array", "minItems": 10**9, "items": {"type": "array", "minItems": 10**9}},
        {"type": "object", "properties": 3},
        {"type": "string", "maxLength": "x"},
    ],
)
async def test_a_schema_that_asks_for_too_much_or_is_none_is_refused(schema: Any) -> None:
    with pytest.raises(ModelBadRequest):
        await says(DemoContext(), response_format=AnswerFormat(schema=schema))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=120), st.text(max_size=12), st.text(max_size=30), st.text(max_size=30))
async def test_whatever_is_asked_something_is_said(
    question: str, name: str, role: str, previous: str
) -> None:
    context = DemoContext(agent=name, role=role, question=question, previous_speaker=previous)
    said = await says(context)
    assert said.strip()
    assert said == await says(context)
    topic = topic_from_question(question)
    assert len(topic.do) <= 120


async def test_a_script_is_followed_turn_by_turn_and_then_left() -> None:
    model = DemoModel(
        script=["One.", ScriptLine(tool="look", arguments={"at": 1}), ScriptLine(json={"a": 1})]
    )
    said: tuple[ModelMessage, ...] = ()
    answers = []
    for _ in range(4):
        answers.append(await ask_model(model, msgspec.structs.replace(HELLO, messages=said)))
        said = (*said, ModelMessage(role="assistant", content=answers[-1].text))
    assert answers[0].text == "One."
    assert answers[1].finish == "tool_calls"
    [call] = answers[1].tool_calls
    assert (call.name, call.arguments) == ("look", '{"at":1}')
    assert answers[2].text == '{"a":1}'
    assert answers[3].text not in ("", '{"a":1}')


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("timeout", ModelTimeout),
        ("rate_limit", ModelRateLimited),
        ("error", ModelError),
        ("disconnect", ModelDisconnected),
    ],
)
async def test_it_misbehaves_in_the_turn_it_is_told_to(kind: Any, error: type[ModelError]) -> None:
    model = DemoModel(fail=DemoFailure(turn=2, kind=kind))
    await ask_model(model, HELLO)
    second = msgspec.structs.replace(HELLO, messages=(ModelMessage(role="assistant", content="1"),))
    with pytest.raises(error) as failed:
        await ask_model(model, second)
    assert type(failed.value) is error


async def test_it_refuses_and_breaks_json_when_told_to() -> None:
    refusing = await ask_model(DemoModel(fail=DemoFailure(kind="refusal")), HELLO)
    assert (refusing.finish, refusing.text) == ("refusal", "")
    assert refusing.refusal
    asked = request(DemoContext(), response_format=AnswerFormat(schema=VOTE))
    with pytest.raises(ModelAnswerInvalid):
        parse_structured_answer(
            asked, await ask_model(DemoModel(fail=DemoFailure(kind="bad_json")), asked)
        )


async def test_options_of_a_request_script_it_too_and_mistakes_are_named() -> None:
    assert await says(DemoContext(), options={"script": ["Scripted."]}) == "Scripted."
    with pytest.raises(ModelBadRequest, match="skript"):
        await says(DemoContext(), options={"skript": []})


async def test_it_speaks_word_by_word_at_its_pace_and_counts() -> None:
    waits = Waits()
    model = DemoModel(script=["One two three."], wps=40, wait=waits)
    pieces = [piece async for piece in model.stream(HELLO)]
    assert [piece.text for piece in pieces if isinstance(piece, TextPiece)] == [
        "One ",
        "two ",
        "three.",
    ]
    assert waits.seconds == [1 / 40] * 3
    answer = await ask_model(model, HELLO)
    assert (answer.model, answer.finish) == ("demo", "end")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (2, 4)
    assert not any(isinstance(piece, ModelToolCall) for piece in pieces)


async def test_it_ends_where_it_has_to() -> None:
    model = DemoModel(script=["One two three four."])
    short = await ask_model(model, msgspec.structs.replace(HELLO, max_output_tokens=2))
    assert (short.text, short.finish) == ("One two", "length")
    cut = await ask_model(model, msgspec.structs.replace(HELLO, stop=(" three",)))
    assert (cut.text, cut.finish) == ("One two", "end")


async def test_nobody_is_called_the_user() -> None:
    people = HeardTurn(name="the user", text="Not so.", kind="human")
    heard = (HeardTurn(name="the user", text=QUESTION, kind="human"), people)
    said = await says(DemoContext(agent="Ada", role="skeptic", question=QUESTION, heard=heard))
    assert "Not so" in said and "the user" not in said.lower()
