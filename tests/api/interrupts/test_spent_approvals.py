"""A person's yes is good once, on the host it was given on, for the run it was given in."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.bundles import bundle_of, fresh, remade, rows_of, take_in
from tests.support.api.caller import Api, definition
from tests.support.api.councils import convened, key_as, read, steer
from tests.support.api.dangerous_tool import Room, allowed, opened, place_of, until, wanting
from tests.support.api.questions import answered, approval, asked, gate, refused, resolve, say, talk

FEW = ["runs:create", "runs:read"]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory, answers: AnswerChecks) -> Iterator[Room]:
    with opened(tmp_path_factory.mktemp("room"), answers) as found:
        yield found
        found.server.stop()


def fork(api: Api, run_id: str, from_seq: int, **edit: Any) -> Any:
    if edit:
        return api.post(f"/v1/host/moot/runs/{run_id}:fork", {"fromSeq": from_seq, "edit": edit})
    return api.post(f"/v1/runs/{run_id}:fork", {"mode": "branch", "fromSeq": from_seq})


def others(room: Room) -> list[Api]:
    """Those who may fork and could not have agreed: without the right, and no people."""
    return [room.with_key(room.new_key("few", scopes=FEW)), key_as(room, "host:dan")]


def test_a_yes_in_a_council_is_not_spent_again_by_a_fork_without_a_person(room: Room) -> None:
    run_id = allowed(room)
    after, used = place_of(room, run_id, "moot.tool.answered") + 1, room.booms
    for key in others(room):
        refused(fork(key, run_id, after), 403, "forbidden")
        asking = place_of(room, run_id, "moot.tool.asked") + 1
        made = fork(key, run_id, asking).json()["runId"]
        assert until(lambda: read(room, made)["floor"]["asks"]), "it is asked again"  # noqa: B023
    assert room.booms == used
    person = key_as(room, "user:eve")
    assert fork(person, run_id, after).status_code == 201
    until(lambda: room.booms == used + 1)


def test_a_yes_at_a_node_is_not_spent_again_by_a_fork_without_a_person(room: Room) -> None:
    body = {"agentId": "host:dan", "inputs": {"prompt": "Go."}}
    run_id = room.post("/v1/runs", body).json()["runId"]
    room.until(run_id, "waiting-approval")
    before = room.booms
    answered(resolve(room, run_id, {"action": "accept"}, "ask"))
    room.until(run_id, "completed")
    for key in others(room):
        place = place_of(room, run_id, "interrupt.resolved")
        for after in range(place + 1, len(room.events(run_id)) + 1):
            refused(fork(key, run_id, after), 403, "forbidden")
    assert room.booms == before + 1


def test_a_child_that_was_let_pass_needs_a_person_when_its_parent_is_forked(api: Api) -> None:
    more = gate("conversationGate", "more")
    kid = api.register(definition("kid-asks", [approval(), more], edges=[("gate", "more")]))
    sub = {"id": "sub", "typeId": "core.subWorkflow", "config": {"workflowId": kid}}
    run_id = api.create(api.register(definition("parent-asks", [sub, talk()], edges=[])))
    child = until(lambda: api.read(run_id).get("childRuns"))[0]["runId"]
    api.until(child, "waiting-approval")
    before = len(api.events(run_id))
    answered(resolve(api, child, {"action": "accept"}))
    until(lambda: "more" in api.read(child)["nodeStates"])
    few = api.with_key(api.new_key("few", scopes=FEW))
    assert fork(few, run_id, before).status_code == 201, "it is asked again"
    answered(say(api, run_id))  # the parent has come as far as its child
    refused(fork(few, run_id, len(api.events(run_id))), 403, "forbidden")
    assert fork(api, run_id, len(api.events(run_id))).status_code == 201


def test_a_foreign_log_does_not_agree_to_a_tool_here(room: Room) -> None:
    """As a forger would write it: a yes at the end of what was exported."""
    model = allowed(room)
    [yes] = [e for e in room.events(model) if e["type"] == "moot.tool.answered"]
    thread, ask = wanting(room)
    rows = rows_of(fresh(room, bundle_of(room, thread), thread))
    last = json.loads(rows[-2])
    name, place = last["runId"], len(rows) - 2
    said = {**yes["payload"], "askId": ask, "conversationId": f"{name}:talk:1", "by": "user:eve"}
    forged = {**last, "type": yes["type"], "sequence": place, "eventId": f"{name}.{place}",
              "payload": said, "causationId": f"{name}.{place - 1}"}  # fmt: skip
    forged.pop("hints", None)
    used = room.booms
    importer = room.with_key(room.new_key("mover", scopes=["runs:import"]))
    bundle = remade([*rows[:-1], json.dumps(forged).encode(), b""])
    made = take_in(importer, bundle)
    assert made.status_code == 201, made.text
    copy = made.json()["threadId"]
    [open_ask] = read(room, copy)["floor"]["asks"]
    assert open_ask["askId"] == ask and place_of(room, copy, "moot.tool.reopened") == place + 1
    assert room.post(f"/v1/host/moot/runs/{copy}:verify", {}).status_code == 200
    items = room.get("/v1/host/moot/inbox").json()["items"]
    assert [item for item in items if item["runId"] == copy], "a person is asked"
    assert room.booms == used
    answered(steer(room, copy, {"allow": ask}))
    until(lambda: room.booms == used + 1)
    until(lambda: read(room, copy)["floor"]["atRest"])
    room.server.restart()
    assert read(room, copy)["floor"]["atRest"] and room.booms == used + 1


def test_a_run_that_goes_on_by_a_foreign_word_is_not_taken_in(api: Api, elsewhere: Api) -> None:
    run_id = asked(api, talk(), approval(), gate("approvalGate", "after"),
                   edges=[("gate", "after")])  # fmt: skip
    answered(resolve(api, run_id, {"action": "accept"}))
    until(lambda: "after" in api.read(run_id)["nodeStates"])
    details = refused(take_in(elsewhere, bundle_of(api, run_id)), 422, "validation_error")
    assert details["nodeIds"] == ["gate"]


def test_a_workflow_is_not_begun_by_bringing_a_run_of_it_along(api: Api, elsewhere: Api) -> None:
    run_id = asked(api, talk())
    bundle = bundle_of(api, run_id)
    for scopes in (["runs:import"], ["runs:import", "runs:create"]):
        key = elsewhere.with_key(elsewhere.new_key("mover", scopes=scopes))
        refused(take_in(key, bundle), 403, "forbidden")
    assert take_in(elsewhere, bundle).status_code == 201


def test_a_run_does_not_come_from_one_that_knows_nothing_of_it(api: Api) -> None:
    """It would take over what that one did, and what it remembers."""
    source, thread = convened(api), convened(api)
    rows = rows_of(fresh(api, bundle_of(api, thread), thread))
    first = json.loads(rows[1])
    mark = {"sourceRunId": source, "fromSeq": 1, "mode": "branch"}
    memory = {**first["payload"].get("memory", {}), "ancestors": [source]}
    for claim in ({"forkedFrom": mark}, {"memory": memory}, {"parentRunId": source}):
        row = json.dumps({**first, "payload": {**first["payload"], **claim}}).encode()
        answer = take_in(api, remade([rows[0], row, *rows[2:]]))
        refused(answer, 422, "validation_error")


def test_a_host_workflow_is_not_brought_along_with_other_nodes(api: Api) -> None:
    """Its nodes would say in a log what only the host says."""
    run_id = asked(api, talk())
    rows = rows_of(fresh(api, bundle_of(api, run_id), run_id))
    head = json.loads(rows[0])
    flow = json.loads(head["definition"])
    told = {**flow["nodes"][0], "id": "tell", "typeId": "moot.deployed", "config": {}}
    text = json.dumps({**flow, "id": "moot.other", "nodes": [*flow["nodes"], told]})
    first = json.loads(rows[1])
    pinned = {"workflowId": "moot.other", "definition": sha256(text.encode()).hexdigest()}
    row = json.dumps({**first, "payload": {**first["payload"], **pinned}}).encode()
    bundle = remade([json.dumps({**head, "definition": text}).encode(), row, *rows[2:]])
    refused(take_in(api, bundle), 400, "validation_error")


def test_a_run_id_of_others_is_not_named_by_an_import(api: Api, elsewhere: Api) -> None:
    bundle = bundle_of(api, asked(api, talk()))
    other = elsewhere.with_key(elsewhere.new_key("acme", tenant="acme-2", admin=True))
    assert take_in(other, bundle).status_code == 201
    foreign, own = take_in(elsewhere, bundle), take_in(other, bundle)
    assert foreign.status_code == own.status_code == 409 and foreign.json() == own.json()
    assert "details" not in foreign.json() or "runId" not in foreign.json()["details"]
