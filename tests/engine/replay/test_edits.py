"""Forks with an edit: one event said otherwise, by the one who forks, and everything after it."""

from typing import Any

import pytest

from moot.core.errors import BadRequest, MootError, SecretGone, Unprocessable
from moot.core.events import Event
from moot.core.payloads.runs import RecordedEdit
from moot.core.state.status import Status
from moot.engine.host import Host
from tests.support.engine.branches import forked
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    edge,
    ended,
    log,
    node,
    order,
    sound,
    until,
    variable,
)
from tests.support.engine.replays import CHAIR, answer, council, put, waits
from tests.support.event_payloads import payload_json


async def place_of(host: Host, run_id: str, type_: str, nth: int = 0) -> int:
    found = [event.sequence for event in await log(host, run_id) if event.type == type_]
    return found[nth]


async def at(host: Host, run_id: str, sequence: int) -> Event:
    return (await log(host, run_id))[sequence]


async def test_variables_change_right_at_the_fork(place: Place) -> None:
    host = place.host()
    copy = node("copy", "core.identity", inputs={"payload": variable("x")})
    source = await begun(host, chain(put("x", 1), copy))
    await ended(host, source)
    cut = await place_of(host, source, "node.completed") + 1
    run = await forked(host, source, cut, edit={"variables": {"x": 9}})
    changed = await at(host, run.run_id, cut)
    assert changed.type == "variable.changed"
    assert payload_json(changed) == {"name": "x", "previous": 1, "next": 9, "by": CHAIR.principal}
    done = await ended(host, run.run_id)
    assert done.nodes["copy"].outputs == {"payload": 9}
    assert done.forked_from is not None
    assert done.forked_from.edit == RecordedEdit(by=CHAIR.principal, kinds=["variables"])
    await sound(host)


INPUTS = {"variables": [{"name": "topic", "type": "string", "required": True},
                        {"name": "size", "type": "number", "defaultValue": 3}]}  # fmt: skip


@pytest.mark.parametrize("from_seq", [0, 1])
async def test_inputs_are_given_otherwise_at_the_beginning(place: Place, from_seq: int) -> None:
    host = place.host()
    copy = node("copy", "core.identity", inputs={"payload": variable("topic")})
    source = await begun(host, chain(copy, **INPUTS), inputs={"topic": "June", "size": 5})
    await ended(host, source)
    run = await forked(host, source, from_seq, edit={"inputs": {"topic": "May"}})
    done = await ended(host, run.run_id)
    assert done.inputs == {"topic": "May", "size": 5}
    assert done.variables == {"topic": "May", "size": 5}
    assert done.nodes["copy"].outputs == {"payload": "May"}
    for wrong in ({"topic": 1}, {"size": "big"}):
        with pytest.raises(BadRequest):
            await forked(host, source, from_seq, edit={"inputs": wrong})
    with pytest.raises(Unprocessable):
        await forked(host, source, 2, edit={"inputs": {"topic": "May"}})


async def talked(host: Host, **given: Any) -> str:
    source = await begun(
        host, chain(council(), put("x", 1), channels={"conversation": {"reducer": "message"}})
    )
    await until(host, source, waits)
    for number, name in enumerate(("host:ada", "host:bo")):
        said = {
            "role": "agent",
            "speakerId": name,
            "content": f"{number}",
            "messageId": f"m{number}",
        }
        await answer(host, source, "talk", said)
    await answer(host, source, "talk", {"operation": "close", "outcome": "June"})
    await ended(host, source)
    return source


async def test_edited_words_say_that_they_are_not_the_speakers_own(place: Place) -> None:
    host = place.host()
    source = await talked(host)
    cut = await place_of(host, source, "conversation.exchanged", 1)
    run = await forked(host, source, cut, edit={"turn": {"content": "other words"}})
    turn = payload_json(await at(host, run.run_id, cut))["turn"]
    was = payload_json(await at(host, source, cut))["turn"]
    assert turn["content"] == "other words"
    for key in ("from", "speakerId", "role", "turnIndex"):
        assert turn[key] == was[key]
    assert turn["editedBy"] == turn["via"] == CHAIR.principal
    assert turn["originalEventId"] == f"{source}.{cut}"
    assert turn["messageId"] == f"{source}:talk:1:2:agent"
    echo = payload_json(await at(host, run.run_id, cut + 1))["value"]
    assert (echo["content"], echo["editedBy"]) == ("other words", CHAIR.principal)
    assert run.conversations["talk"].open
    await answer(host, run.run_id, "talk", {"operation": "close", "outcome": "May"})
    assert (await ended(host, run.run_id)).status is Status.COMPLETED
    await sound(host)


async def test_the_last_turn_can_be_edited_too(place: Place) -> None:
    host = place.host()
    source = await talked(host)
    cut = await place_of(host, source, "conversation.closed")
    run = await forked(host, source, cut, edit={"turn": {"content": "adjourned"}})
    done = await ended(host, run.run_id)
    closed = payload_json(await at(host, run.run_id, cut))
    assert closed["finalTurn"]["content"] == "adjourned" and closed["outcome"] == "June"
    assert closed["finalTurn"]["editedBy"] == CHAIR.principal
    assert done.status is Status.COMPLETED


async def test_a_council_that_was_closed_is_closed_otherwise(place: Place) -> None:
    host = place.host()
    source = await talked(host)
    cut = await place_of(host, source, "conversation.closed")
    value = {"operation": "close", "outcome": "May"}
    run = await forked(host, source, cut, edit={"answer": value})
    done = await ended(host, run.run_id)
    assert (done.nodes["talk"].outputs or {})["outcome"] == "May"


BOSS = {"plan": [{"kind": "next-worker", "nextWorkerIds": ["a"]}]}


def loop() -> list[dict[str, Any]]:
    work = {"outputMapping": {"who": "who"}}
    top = chain(
        node("boss", "core.orchestrator.supervisor", config=BOSS),
        node("hand", "core.dispatch", config=work), id="top",
    )  # fmt: skip
    top["edges"] = [edge("boss", "hand"), edge("hand", "boss")]
    return [chain(put("who", name), id=name) for name in ("a", "b")] + [top]


async def test_a_decision_is_made_otherwise(place: Place) -> None:
    host = place.host()
    source = await begun(host, *loop())
    assert (await ended(host, source)).variables == {"who": "a"}
    cut = await place_of(host, source, "runOrchestrator.decided")
    other = {"kind": "next-worker", "nextWorkerIds": ["b"]}
    run = await forked(host, source, cut, edit={"decision": other})
    decided = await at(host, run.run_id, cut)
    assert payload_json(decided)["decision"] == other and payload_json(decided)["iteration"] == 1
    assert decided.hints == {"editedBy": CHAIR.principal}
    done = await ended(host, run.run_id)
    assert (done.status, done.variables) == (Status.COMPLETED, {"who": "b"})
    enough = await forked(host, source, cut, edit={"decision": {"kind": "terminate"}})
    assert (await ended(host, enough.run_id)).variables == {}
    with pytest.raises(BadRequest):
        await forked(host, source, cut, edit={"decision": {"kind": "dance"}})
    await sound(host)


async def test_an_answer_is_given_otherwise(place: Place) -> None:
    host = place.host()
    body = chain(node("ok", "core.approvalGate"), put("x", 1))
    body["nodes"].append(node("undo"))
    body["edges"].append(edge("ok", "undo", sourceOutput="reject"))
    source = await begun(host, body)
    await until(host, source, waits)
    await answer(host, source, "ok", {"action": "accept"})
    assert (await ended(host, source)).variables == {"x": 1}
    cut = await place_of(host, source, "interrupt.resolved")
    run = await forked(host, source, cut, edit={"answer": {"action": "reject"}})
    done = await ended(host, run.run_id)
    assert done.nodes["undo"].status == "completed" and done.variables == {}
    resolved = payload_json(await at(host, run.run_id, cut))
    assert resolved["resolvedBy"] == CHAIR.principal
    assert resolved["resumeValue"]["action"] == "reject"
    with pytest.raises(BadRequest):
        await forked(host, source, cut, edit={"answer": {"action": "sing"}})
    await sound(host)


async def test_models_are_carried_to_those_who_will_use_them(place: Place) -> None:
    host = place.host()
    source = await begun(host, chain(put("x", 1)))
    await ended(host, source)
    run = await forked(host, source, 1, edit={"models": {"host:ada": "small"}})
    again = await forked(host, run.run_id, 1, edit={"models": {"host:bo": "large"}})
    assert run.configurable == {"models": {"host:ada": "small"}}
    assert again.configurable == {"models": {"host:ada": "small", "host:bo": "large"}}


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ({"turn": {"content": "x"}}, "edit.turn"),
        ({"decision": {"kind": "terminate"}}, "edit.decision"),
        ({"answer": {"action": "reject"}}, "edit.answer"),
    ],
)
async def test_what_does_not_fit_the_event_is_refused_by_its_name(
    place: Place, edit: dict[str, Any], named: str
) -> None:
    host = place.host()
    source = await begun(host, chain(put("x", 1)))
    length = (await ended(host, source)).next_sequence
    for from_seq, found in ((2, "variable.changed"), (length, f"{length} events")):
        with pytest.raises(Unprocessable) as refusal:
            await forked(host, source, from_seq, edit=edit)
        assert named in refusal.value.message and found in refusal.value.message
    assert len(await host.store.runs()) == 1


async def test_one_event_is_replaced_and_none_after_the_end(place: Place) -> None:
    host = place.host()
    source = await talked(host)
    cut = await place_of(host, source, "conversation.closed")
    both = {"turn": {"content": "x"}, "answer": {"operation": "close"}}
    with pytest.raises(BadRequest):
        await forked(host, source, cut, edit=both)
    length = len(await order(host, source))
    with pytest.raises(Unprocessable):
        await forked(host, source, length, edit={"variables": {"x": 2}})
    assert len(await host.store.runs()) == 1


# -- secrets ---------------------------------------------------------------------------------------

SECRET = [{"name": "key", "type": "string", "sensitive": True}]


def secretive() -> dict[str, Any]:
    copy = node("copy", "core.identity", inputs={"payload": variable("key")})
    same = node("same", "core.conditional", config={"expression": "variables.key == 'hush-hush'"})
    return chain(copy, node("ok", "core.approvalGate"), same, variables=SECRET)


async def test_a_secret_that_is_still_held_goes_with_the_branch(place: Place) -> None:
    host = place.host()
    source = await begun(host, secretive(), inputs={"key": "hush-hush"})
    await until(host, source, waits)
    run = await forked(host, source, len(await log(host, source)))
    await answer(host, run.run_id, "ok", {"action": "accept"})
    done = await ended(host, run.run_id)
    assert done.nodes["same"].outputs == {"true": True, "output": True, "result": True} or (
        (done.nodes["same"].outputs or {}).get("true") is not None
    )
    assert "hush" not in repr(await log(host, run.run_id))
    assert not await host.store.sealed(TENANT, run.run_id)


async def test_a_branch_never_goes_on_with_a_mask(place: Place) -> None:
    host = place.host()
    source = await begun(host, secretive(), inputs={"key": "hush-hush"})
    await until(host, source, waits)
    length = len(await log(host, source))
    await answer(host, source, "ok", {"action": "accept"})
    await ended(host, source)
    with pytest.raises(SecretGone) as refusal:
        await forked(host, source, length)
    assert refusal.value.details["names"] == ["key"]
    run = await forked(host, source, length, edit={"variables": {"key": "hush-hush"}})
    await answer(host, run.run_id, "ok", {"action": "accept"})
    done = await ended(host, run.run_id)
    assert (done.nodes["same"].outputs or {}).get("true") is not None
    again = await forked(host, source, 1, edit={"inputs": {"key": "hush-hush"}})
    await until(host, again.run_id, waits)
    assert "hush" not in repr(await log(host, run.run_id)) + repr(await log(host, again.run_id))


async def test_a_secret_of_the_workflow_itself_is_known(place: Place) -> None:
    host = place.host()
    body = secretive()
    body["variables"] = [{**SECRET[0], "defaultValue": "hush-hush"}]
    source = await begun(host, body)
    await until(host, source, waits)
    length = len(await log(host, source))
    await answer(host, source, "ok", {"action": "accept"})
    await ended(host, source)
    run = await forked(host, source, length)
    await answer(host, run.run_id, "ok", {"action": "accept"})
    done = await ended(host, run.run_id)
    assert (done.nodes["same"].outputs or {}).get("true") is not None


async def test_a_refused_fork_leaves_nothing_behind(place: Place) -> None:
    host = place.host()
    source = await begun(host, secretive(), inputs={"key": "hush-hush"})
    await until(host, source, waits)
    await answer(host, source, "ok", {"action": "accept"})
    await ended(host, source)
    with pytest.raises(MootError):
        await forked(host, source, 4)
    assert [run_id for _, run_id in await host.store.runs()] == [source]
