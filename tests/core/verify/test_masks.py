"""What a log hides cannot be compared; everything beside it is."""

from typing import Any

import pytest
from msgspec.structs import replace

from moot.core.events import Event
from moot.core.verify.walk import Difference, verify
from moot.core.workflows.node_types import Completed
from tests.core.verify.test_tampering import Log, at, told
from tests.support.core.simulator import TENANT, Life, World, chain, compiled, node
from tests.support.event_payloads import payload_json

PIN = {"type": "variable", "variableName": "pin"}
TOPIC = {"type": "variable", "variableName": "topic"}
SECRET = {"name": "pin", "type": "string", "sensitive": True, "defaultValue": "hunter2"}
PLAIN = {"name": "topic", "type": "string", "defaultValue": "June"}
TEXTS = ("[REDACTED]", "sha256:" + "0" * 64)


def lived(*variables: dict[str, Any]) -> Life:
    body = chain(
        node("copy", "core.identity", inputs={"payload": TOPIC}),
        node("look", "core.identity", inputs={"payload": PIN}),
        node("work", "acme.work"),
        node("ok", "core.approvalGate", config={"title": "Ship?"}),
        variables=list(variables),
    )
    world = World()
    life = world.start(compiled(body))
    world.finish(life, "work", Completed({"said": "hunter2 is it", "n": 1}))
    world.answer(life, "ok", {"action": "accept", "comment": "hunter2, go"})
    assert life.run.status == "completed", life.order()
    return life


def checked(life: Life, log: list[Event]) -> Difference | None:
    return verify(life.flow, TENANT, life.run.run_id, log)


LIVES = {"a secret": lived(SECRET, PLAIN)} | {
    text: lived({**SECRET, "sensitive": False, "defaultValue": text}, {**PLAIN}) for text in TEXTS
}

FORGED = {
    "a pure output": lambda log: told(
        log, at(log, "node.completed", nodeId="copy"), outputs={"payload": "May"}
    ),
    "what was decided": lambda log: told(log, at(log, "approval.received"), action="reject"),
    "what the gate gave": lambda log: told(
        log, at(log, "node.completed", nodeId="ok"), outputs={"action": "reject"}
    ),
    "part of what the gate gave": lambda log: _part(log, at(log, "node.completed", nodeId="ok")),
    "the end of the run": lambda log: told(log, len(log) - 1, outputs={"payload": "May"}),
    "how the node goes on": lambda log: told(
        log, at(log, "node.resumed"), resumeValue={"action": "reject"}
    ),
    "another question": lambda log: told(log, at(log, "interrupt.requested"), data={"title": "?"}),
    "a hint": lambda log: [*log[:-1], replace(log[-1], hints={"made": "up"})],
}  # fmt: skip


def _part(log: Log, place: int) -> Log:
    return told(log, place, outputs={**payload_json(log[place])["outputs"], "more": 1})


@pytest.mark.parametrize("which", LIVES)
def test_an_honest_log_is_found_sound(which: str) -> None:
    assert checked(LIVES[which], LIVES[which].log) is None


@pytest.mark.parametrize("which", LIVES)
@pytest.mark.parametrize("how", FORGED)
def test_what_is_forged_beside_a_mask_is_found(which: str, how: str) -> None:
    life = LIVES[which]
    assert checked(life, FORGED[how](list(life.log))) is not None


def test_words_around_a_mask_are_compared() -> None:
    life = LIVES["a secret"]
    place = at(life.log, "node.resumed")
    assert payload_json(life.log[place])["resumeValue"]["comment"] == "[REDACTED], go"
    other = {"action": "accept", "comment": "[REDACTED], stop"}
    assert checked(life, told(life.log, place, resumeValue=other)) is not None


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_looks_like_a_mask_hides_nothing(text: str) -> None:
    life = LIVES[text]
    place = at(life.log, "node.completed", nodeId="look")
    assert payload_json(life.log[place])["outputs"] == {"payload": text}
    assert checked(life, told(life.log, place, outputs={"payload": "else"})) is not None


def test_what_a_node_makes_of_a_secret_is_not_compared() -> None:
    life = LIVES["a secret"]
    place = at(life.log, "node.completed", nodeId="look")
    assert checked(life, told(life.log, place, outputs={"payload": "[REDACTED]!"})) is None
