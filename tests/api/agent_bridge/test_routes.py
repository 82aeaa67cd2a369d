"""The thread API with keys: shapes, cursors, who may say what, and what is wrong with it."""

import json
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api, parsed
from tests.support.api.councils import convened, joined, key_as, person, run_of, tell
from tests.support.api.questions import (
    answered,
    asked,
    begun,
    gate,
    refused,
    resolve,
    say,
    talk,
    turns,
    unchanged,
)
from tests.support.api.threads import conflict, events, new, post, posted, until


@pytest.fixture(scope="module")
def ann(api: Api) -> Api:
    return key_as(api, "user:ann")


@pytest.fixture(scope="module")
def codex(api: Api) -> Api:
    return key_as(api, "host:codex")


@pytest.fixture
def thread(api: Api) -> str:
    """With codex in it."""
    found = new(api)
    posted(api, found, {"invite": "codex"}, type="control")
    return found


# -- shapes --------------------------------------------------------------------------------------


def test_a_thread_begins_with_its_name(ann: Api) -> None:
    thread = new(ann, "Q1  prices")
    [created] = events(ann, thread)
    assert (created["type"], created["content"], created["from"], created["to"]) == (
        "thread.created", "Q1 prices", "user:ann", "all",
    )  # fmt: skip
    assert created["thread"] == thread and set(created["meta"]) == {"tags"}
    listed = ann.get("/threads").json()["threads"]
    assert [row["name"] for row in listed if row["id"] == thread] == ["Q1 prices"]


def test_an_event_has_the_envelope_and_is_the_event_of_the_log(api: Api, codex: Api) -> None:
    thread = new(api)
    posted(api, thread, {"invite": {"participant_id": "codex", "profile": {"client": "codex"}}},
           type="control")  # fmt: skip
    first = posted(api, thread, "What is it?", to="codex", meta={"tags": ["q"], "ref": 1})
    second = posted(codex, thread, "This.", meta={"reply_to": first["id"]})
    assert set(first) == {"id", "ts", "thread", "seq", "turn", "type", "from", "to",
                          "content", "meta"}  # fmt: skip
    assert (first["from"], first["to"], first["meta"]) == (
        "user", "codex", {"tags": ["q"], "ref": 1},
    )  # fmt: skip
    assert second["meta"] == {"reply_to": first["id"], "tags": []} and second["from"] == "codex"
    log = {event["eventId"]: event for event in api.events(thread)}
    turn = log[second["id"]]["payload"]["turn"]
    assert (turn["speakerId"], turn["content"]) == ("host:codex", "This.")
    assert turn["meta"]["replyTo"] == first["seq"] == log[first["id"]]["sequence"]
    assert events(api, thread)[-2:] == [first, second] or second in events(api, thread)


def test_the_name_of_a_thread_can_be_changed(api: Api) -> None:
    thread = new(api, "Old")
    renamed = posted(api, thread, "New", type="thread.renamed")
    assert (renamed["type"], renamed["content"]) == ("thread.renamed", "New")
    rows = api.get("/threads").json()["threads"]
    assert [row["name"] for row in rows if row["id"] == thread] == ["New"]
    assert [e["content"] for e in events(api, thread)] == ["Old", "New"]


# -- cursors -------------------------------------------------------------------------------------


def test_every_cursor_goes_on_where_it_was_left(api: Api, thread: str) -> None:
    for number in range(5):
        posted(api, thread, str(number))
        posted(api, thread, {"invite": f"a{number}", "discussion": True}, type="control")
    log = [event["timestamp"] for event in api.events(thread)]
    assert len(set(log)) < len(log), "what is decided together has one time in the log"
    whole = events(api, thread)
    times = [event["ts"] for event in whole]
    assert times == sorted(set(times)), "times differ and grow"
    for place, event in enumerate(whole):
        assert events(api, thread, after=event["seq"]) == whole[place + 1 :]
        assert events(api, thread, since=event["ts"]) == whole[place + 1 :]
    assert events(api, thread, after=-1) == whole == events(api, thread, since="2000-01-01")
    assert events(api, thread, since="2100-01-01T00:00:00+00:00") == []
    page = api.get(f"/threads/{thread}/events", params={"after": -1, "limit": 2}).json()
    assert page["events"] == whole[:2] and page["more"] is True
    assert events(api, thread, limit=2) == whole[-2:], "without a cursor the newest"


@pytest.mark.parametrize(
    "query", [{"since": "yesterday"}, {"since": "5"}, {"after": "x"}, {"after": -2}, {"limit": 0}]
)
def test_a_bad_cursor_is_a_bad_request(api: Api, thread: str, query: dict[str, Any]) -> None:
    answer = api.get(f"/threads/{thread}/events", params=query)
    refused(answer, 400, "validation_error")


def stream(
    api: Api, thread: str, count: int, seen: int | None = None, **query: Any
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    headers = {} if seen is None else {"Last-Event-ID": str(seen)}
    with api.open(f"/threads/{thread}/events/stream", headers, params=query) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            assert line == "" or line.startswith((":", "data: ")), line
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if len(found) == count:
                    return found
    return found


def test_a_stream_has_bare_data_and_takes_every_cursor(api: Api, thread: str) -> None:
    for number in range(4):
        posted(api, thread, str(number))
    whole = events(api, thread)
    assert stream(api, thread, len(whole), after=-1) == whole
    for place in (0, 2, 4):
        rest = whole[place + 1 :]
        assert stream(api, thread, len(rest), after=whole[place]["seq"]) == rest
        assert stream(api, thread, len(rest), since=whole[place]["ts"]) == rest
        assert stream(api, thread, len(rest), seen=whole[place]["seq"]) == rest


def test_the_stream_of_a_closed_thread_ends_and_is_not_opened_again(api: Api) -> None:
    thread = new(api)
    posted(api, thread, "bye")
    assert api.post(f"/v1/host/moot/threads/{thread}:close", {}).status_code == 200
    whole = events(api, thread)
    assert whole[-1]["meta"]["tags"] == ["coordinator", "closed"]
    assert stream(api, thread, 99, after=-1) == whole
    assert api.get(f"/threads/{thread}/events/stream").status_code == 204
    about = conflict(post(api, thread), "conversation_closed")
    assert about["thread"] == thread


def test_the_stream_of_a_conversation_ends_with_it_though_its_run_goes_on(api: Api) -> None:
    run_id = asked(api, talk(), gate("approvalGate", "ok"))
    thread = f"{run_id}~convo~1"
    posted(api, thread, "bye")
    with api.open(f"/threads/{thread}/events/stream") as live:
        lines = live.iter_lines()
        assert next(lines).startswith(":")
        answered(api.post(f"/v1/host/moot/threads/{thread}:close", {}))
        told = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert told[-1]["meta"]["tags"] == ["coordinator", "closed"]
    api.until(run_id, "waiting-approval")
    whole = events(api, thread)
    assert whole[-1] == told[-1] and stream(api, thread, 99, after=-1) == whole
    for query in ({}, {"after": whole[-1]["seq"]}, {"since": whole[-1]["ts"]}):
        answer = api.get(f"/threads/{thread}/events/stream", params=query)
        assert answer.status_code == 204, query


# -- who is here --------------------------------------------------------------------------------


def sign(api: Api, thread: str, state: Any, **body: Any) -> httpx.Response:
    return api.post(f"/threads/{thread}/presence", {"state": state, **body})


def test_who_listens_is_told_who_is_here_and_nothing_is_kept(
    api: Api, codex: Api, ann: Api, thread: str
) -> None:
    before = api.events(thread)
    with api.open(f"/v1/host/moot/threads/{thread}/stream") as answer:
        frames = parsed(answer.iter_lines())
        while next(frames).event != "moot.participant.joined":
            pass
        for key, state in ((codex, "thinking"), (codex, "thinking"), (ann, "typing")):
            assert sign(key, thread, state).status_code == 200
        told = [next(frames) for _ in range(2)]
    assert [(f.event, f.id, f.data["participant"], f.data["state"]) for f in told] == [
        ("presence", None, "host:codex", "thinking"), ("presence", None, "user:ann", "typing"),
    ]  # fmt: skip
    found = api.get(f"/threads/{thread}/presence").json()
    assert {name: here["state"] for name, here in found["presence"].items()} == {
        "codex": "thinking", "user:ann": "typing",
    }  # fmt: skip
    assert api.events(thread) == before


def test_a_change_is_written_down_when_that_is_asked_for(api: Api, codex: Api, thread: str) -> None:
    first = posted(codex, thread, "thinking.start", type="presence")
    assert (first["type"], first["content"], first["from"]) == (
        "presence", {"state": "thinking"}, "codex",
    )  # fmt: skip
    with unchanged(api, thread):
        for _ in range(3):
            assert post(codex, thread, "thinking.start", type="presence").json()["received"]
    posted(codex, thread, "thinking.end", type="presence")
    assert api.types(thread).count("moot.presence.changed") == 2
    assert api.get(f"/threads/{thread}/presence").json()["presence"]["codex"]["state"] == (
        "listening"
    )


def test_who_names_no_state_listens_and_details_may_be_anything(codex: Api, thread: str) -> None:
    for details in ("at my desk", ["a", 1], 5, False, {"model": "gpt"}):
        answer = codex.post(f"/threads/{thread}/presence", {"details": details}).json()["presence"]
        assert (answer["state"], answer["details"]) == ("listening", details)
        assert sign(codex, thread, "idle").json()["presence"]["details"] == details
    for body in ({}, {"content": {}}, {"content": {"details": "here"}}):
        answer = codex.post(f"/threads/{thread}/events", {"type": "presence", **body})
        assert answer.json()["event"]["content"] == {"state": "listening"}


def test_who_is_muted_is_here_and_tells_nothing_of_himself(
    api: Api, codex: Api, thread: str
) -> None:
    assert sign(codex, thread, "idle", details="before").json()["presence"]["details"] == "before"
    posted(api, thread, {"mute": ["codex"]}, type="control")
    here = sign(codex, thread, "thinking", details="BUY NOW").json()["presence"]
    assert (here["state"], here["details"]) == ("thinking", "before")


def test_only_who_takes_part_is_here_and_under_his_own_name(
    api: Api, codex: Api, thread: str
) -> None:
    stranger = key_as(api, "host:stranger")
    refused(sign(stranger, thread, "idle"), 422, "validation_error")
    refused(sign(codex, thread, "idle", **{"from": "claude"}), 403, "forbidden")
    for body in ({"state": "flying"}, {"state": 5}, {"state": "idle", "more": 1}):
        answer = codex.post(f"/threads/{thread}/presence", body)
        refused(answer, 400, "validation_error")
    large = {"note": "x" * 9000}
    refused(sign(codex, thread, "idle", details=large), 413, "payload_too_large")
    assert api.get(f"/threads/{thread}/presence").json()["presence"] == {}
    answered(api.post(f"/v1/host/moot/threads/{thread}:close", {}))
    conflict(sign(codex, thread, "idle"), "conversation_closed")


def test_who_says_nothing_any_more_is_shown_stale_and_offline(host: Callable[..., Api]) -> None:
    brief = host(MOOT_PRESENCE_S="1")
    thread = new(brief)
    assert sign(brief, thread, "thinking", details={"client": "x"}).status_code == 200

    def gone() -> Any:
        here = brief.get(f"/threads/{thread}/presence").json()["presence"]["user"]
        return here if here["stale"] else None

    found = until(gone)
    assert (found["state"], found["details"]) == ("offline", {"client": "x"})
    assert sign(brief, thread, "idle").json()["presence"]["stale"] is False


# -- one log, two views --------------------------------------------------------------------------


def test_a_thread_and_its_conversation_agree(api: Api, ann: Api, codex: Api) -> None:
    thread = convened(api, "codex", open=True)
    answered(person(ann, thread, "A question.", to="host:codex"))
    posted(codex, thread, "An answer.", to="user:ann")
    answered(tell(codex, thread, "host:codex", {"any": "thing"}, messageId="m-1"))
    posted(ann, thread, "Thanks.")
    told = [event for event in events(api, thread) if event["type"] == "message"]
    said = turns(api, run_of(thread))
    assert [(e["from"], e["to"], e["content"]) for e in told] == [
        (t["from"].removeprefix("host:"), t.get("to", "all").removeprefix("host:"), t["content"])
        for t in said
    ]
    assert told[0]["content"] == "June?" and told[0]["from"] == "user"


def test_a_conversation_inside_another_run_has_a_thread_view(api: Api) -> None:
    run_id = asked(api, talk(prompt="May?"))
    thread = f"{run_id}~convo~1"
    answered(say(api, run_id, "Yes."))
    posted(api, thread, "No.")
    told = events(api, thread)
    said = [event["content"] for event in told if event["type"] == "message"]
    assert said == ["May?", "Yes.", "No."] and told[0]["type"] == "thread.created"
    assert {event["thread"] for event in told} == {thread}
    state = api.get(f"/threads/{thread}/state").json()
    assert state["thread"] == thread and state["state"]["open"] is True
    assert [turn["content"] for turn in turns(api, run_id)][1:] == ["Yes.", "No."]


def test_two_conversations_of_one_run_keep_apart(api: Api) -> None:
    run_id = begun(api, talk(), {"id": "other", "typeId": "core.conversationGate"}, edges=[])
    api.until(run_id, "waiting-approval")
    for node in ("convo", "other"):
        answered(resolve(api, run_id, {"content": node}, node))
    for node in ("convo", "other"):
        told = events(api, f"{run_id}~{node}~1")
        assert [e["content"] for e in told if e["type"] == "message"] == [node]


# -- who says it ---------------------------------------------------------------------------------


def test_who_speaks_is_the_keys_matter(api: Api, ann: Api, codex: Api, thread: str) -> None:
    assert posted(ann, thread)["from"] == "user:ann"
    assert posted(codex, thread)["from"] == "codex"
    assert posted(codex, thread, **{"from": "codex"})["from"] == "codex"
    with unchanged(api, thread):
        for key, name in ((codex, "claude"), (codex, "user"), (ann, "codex"), (ann, "user:bob")):
            refused(post(key, thread, **{"from": name}), 403, "forbidden")
        refused(post(codex, thread, {"done": True}, type="control", **{"from": "claude"}),
                403, "forbidden")  # fmt: skip


def test_who_was_not_invited_is_refused_with_the_roster(api: Api, thread: str) -> None:
    stranger = key_as(api, "host:stranger")
    with unchanged(api, thread):
        details = refused(post(stranger, thread), 422, "validation_error")
        assert details["code"] == "participant_not_invited"


def test_a_threads_token_speaks_in_it_and_nowhere_else(api: Api, thread: str) -> None:
    token, other = joined(api, thread, "codex"), new(api)
    assert posted(token, thread, "By token.")["from"] == "codex"
    assert events(token, thread)[-1]["content"] == "By token."
    assert token.get(f"/threads/{thread}/state").status_code == 200
    for answer in (token.get(f"/threads/{other}/events"), post(token, other)):
        assert answer.status_code == 404
    assert token.get("/threads").status_code == 403


def test_ids_and_times_are_the_hosts(api: Api, thread: str) -> None:
    sent = {"id": "mine-1", "ts": "1999-01-01T00:00:00Z", "seq": 3, "turn": 9, "thread": thread}
    event = posted(api, thread, "once", **sent)
    assert event["id"] != "mine-1" and event["ts"] > "2020" and event["seq"] > 3
    with unchanged(api, thread):
        assert posted(api, thread, "once", **sent) == event, "the same again is said once"
        conflict(post(api, thread, "otherwise", **sent), "message_id_conflict")
        answer = post(api, thread, "x", thread="th_another")
        refused(answer, 400, "validation_error")


@pytest.mark.parametrize(
    ("type_", "content"),
    [
        ("message", "once"), ("control", {"prod": ["codex"]}), ("thread.renamed", "Anew"),
        ("control", {"invite": "ed", "pause": True}), ("control", {"fly": 1}),
        ("presence", "thinking.start"), ("control", '{"mute": 5}'),
    ],
)  # fmt: skip
def test_whatever_is_sent_under_a_name_again_is_there_once_even_after_the_end(
    api: Api, thread: str, type_: str, content: Any
) -> None:
    sent = {"id": "mine-1", "type": type_}
    first = post(api, thread, content, **sent)
    assert first.status_code == 200, first.text
    with unchanged(api, thread):
        assert post(api, thread, content, **sent).json() == first.json()
        conflict(post(api, thread, "other", id="mine-1"), "message_id_conflict")
        conflict(post(api, thread, {"done": True}, id="mine-1", type="control"),
                 "message_id_conflict")  # fmt: skip
    answered(api.post(f"/v1/host/moot/threads/{thread}:close", {}))
    assert post(api, thread, content, **sent).json() == first.json()
    conflict(post(api, thread, content, id="mine-2", type=type_), "conversation_closed")
    assert api.post(f"/v1/host/moot/runs/{thread}:verify").json()["identical"] is True


def test_a_key_of_a_request_gets_the_same_answer(api: Api, thread: str) -> None:
    headers = {"Idempotency-Key": f"key-{thread}"}
    body = {"content": "once"}
    first = api.post(f"/threads/{thread}/events", body, headers=headers).json()
    assert api.post(f"/threads/{thread}/events", body, headers=headers).json() == first
    assert [e["content"] for e in events(api, thread)].count("once") == 1


def test_another_tenants_thread_is_as_good_as_none(foreign: Api, thread: str) -> None:
    for place in (thread, "th_nothing", "nobody~x~1"):
        for answer in (
            foreign.get(f"/threads/{place}/events"), post(foreign, place),
            foreign.get(f"/threads/{place}/state"), foreign.get(f"/threads/{place}/presence"),
            foreign.get(f"/threads/{place}/events/stream"),
            foreign.post(f"/threads/{place}/presence", {"state": "idle"}),
        ):  # fmt: skip
            refused(answer, 404, "not_found")
    assert thread not in [row["id"] for row in foreign.get("/threads").json()["threads"]]
