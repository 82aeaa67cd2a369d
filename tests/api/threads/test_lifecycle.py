"""Threads as they are kept: begun, listed, renamed, linked, put away, taken up again."""

from collections.abc import Iterator
from typing import Any

import pytest

from moot import ApiError
from moot.api.threads import controls
from moot.api.threads.lookup import find_thread
from moot.core.runs.answers import GateAnswer
from moot.testing import Bench
from tests.support.api.caller import Api
from tests.support.api.councils import ADA, THREADS, close, convened, key_as, read, steer, tell
from tests.support.api.questions import answered, refused, unchanged
from tests.support.api.threads import events, new, post, until


def begun(api: Api, title: str = "Prices", **body: Any) -> str:
    answer = api.post(THREADS, {"title": title, **body})
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert answer.headers["location"] == found["url"] == f"{THREADS}/{found['threadId']}"
    return str(found["threadId"])


def listed(api: Api, **query: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor = None
    while True:
        given = {"limit": 7, **query, **({"cursor": cursor} if cursor else {})}
        page = api.get(THREADS, params=given).json()
        rows += page["threads"]
        cursor = page.get("nextCursor")
        if cursor is None:
            return rows


def row(api: Api, thread: str, **query: Any) -> dict[str, Any] | None:
    return next((each for each in listed(api, **query) if each["threadId"] == thread), None)


def said(api: Api, thread: str) -> list[tuple[str, Any]]:
    events = api.get(f"/threads/{thread}/events").json()["events"]
    return [(each["from"], each["content"]) for each in events if each["type"] == "message"]


@pytest.fixture(scope="module")
def mine(api: Api) -> Api:
    """A tenant of its own: what it lists is what these tests have made."""
    return api.with_key(api.new_key("keeper", tenant="keeping", admin=True))


def test_a_thread_begins_with_who_is_invited_and_what_is_asked(mine: Api) -> None:
    thread = begun(mine, "Prices", opening="Do we?", participants=["codex", ADA])
    found = read(mine, thread)
    assert (found["title"], found["open"], found["turns"]) == ("Prices", True, 0)
    assert found["floor"]["mode"] == "auto" and found["floor"]["now"] == "small"
    assert found["floor"]["outside"] == ["host:codex", ADA], "nobody here speaks for them"
    invited = found["state"]["participants"]["invited"]
    assert [each["id"] for each in invited] == ["host:codex", ADA]
    assert said(mine, thread) == [("user", "Do we?")]
    called = [e for e in mine.events(thread) if e["type"] == "moot.participation.decided"]
    assert [one["agentId"] for one in called[0]["payload"]["called"]] == ["host:codex", ADA]
    quiet = begun(mine, "Later", participants=["codex"])
    assert "moot.participation.decided" not in mine.types(quiet), "nobody has said anything yet"


@pytest.mark.parametrize(
    "body",
    [{}, {"title": ""}, {"title": "x" * 257}, {"title": "x", "participants": ["user"]},
     {"title": "x", "participants": ["a", "a"]}, {"title": "x", "policy": {"mode": "loud"}},
     {"title": "x", "more": 1}, {"title": "x", "opening": ""}],
)  # fmt: skip
def test_what_is_no_thread_begins_none(mine: Api, body: dict[str, Any]) -> None:
    before = len(listed(mine))
    refused(mine.post(THREADS, body), 400, "validation_error")
    assert len(listed(mine)) == before


def test_the_list_is_derived_from_what_is_said(mine: Api) -> None:
    first, second = begun(mine, "One"), begun(mine, "Two")
    names = [each["threadId"] for each in listed(mine)]
    assert names.index(second) < names.index(first)
    mine.post(f"/threads/{first}/events", {"content": "hello"})
    found = row(mine, first)
    assert found is not None
    assert (found["title"], found["turns"], found["open"]) == ("One", 1, True)
    assert found["lastSequence"] == read(mine, first)["lastSequence"]
    answered(close(mine, first))
    assert (row(mine, first) or {})["open"] is False
    assert [each["threadId"] for each in listed(mine, prefix=second)] == [second]


def test_a_name_is_changed_by_whoever_takes_part(mine: Api) -> None:
    thread = begun(mine, "Before")
    answer = mine.post(f"{THREADS}/{thread}:rename", {"title": " After \n all "})
    assert answered(answer)["title"] == "After all"
    assert (row(mine, thread) or {})["title"] == "After all"
    assert mine.post(f"{THREADS}/{thread}:rename", {"title": "After all"}).status_code == 200
    assert mine.types(thread).count("moot.thread.renamed") == 1
    stranger = key_as(mine, "host:stranger", tenant="keeping")
    with unchanged(mine, thread):
        refused(stranger.post(f"{THREADS}/{thread}:rename", {"title": "x"}), 422,
                "validation_error")  # fmt: skip
        for title in ("", "x" * 257, "a\u0007b"):
            refused(mine.post(f"{THREADS}/{thread}:rename", {"title": title}), 400,
                    "validation_error")  # fmt: skip
    minutes = mine.get(f"{THREADS}/{thread}/export", params={"format": "json"}).json()
    assert minutes["title"] == "After all"


@pytest.mark.parametrize("title", ["x\u0007y", "x\u202ey", " ", "x" * 257])
def test_a_title_is_a_line_that_can_be_read_wherever_it_is_given(mine: Api, title: str) -> None:
    thread = begun(mine)
    before = len(listed(mine))
    for path, body in (
        (THREADS, {"title": title}),
        ("/v1/host/moot/councils", {"question": "?", "participants": ["a", "b"], "title": title}),
        (f"{THREADS}/{thread}/links", {"title": title}),
        (f"{THREADS}/{thread}:rename", {"title": title}),
        (f"/threads/{thread}/events", {"type": "thread.renamed", "content": title}),
    ):
        assert mine.post(path, body).status_code == 400, path
    if title.strip():
        refused(mine.post("/threads", {"name": title}), 400, "validation_error")
    assert len(listed(mine)) == before


def test_what_was_put_away_is_not_listed_until_it_is_taken_out(mine: Api, foreign: Api) -> None:
    thread = begun(mine, "Old")
    with unchanged(mine, thread):
        assert answered(mine.post(f"{THREADS}/{thread}:archive"))["archived"] is True
    assert row(mine, thread) is None and (row(mine, thread, archived=True) or {})["archived"]
    assert thread not in [each["id"] for each in mine.get("/threads").json()["threads"]]
    assert read(mine, thread)["open"], "it can be read and gone on with all the same"
    refused(foreign.post(f"{THREADS}/{thread}:unarchive"), 404, "not_found")
    answered(mine.post(f"{THREADS}/{thread}:unarchive"))
    assert row(mine, thread) is not None and row(mine, thread, archived=True) is None


# -- side threads --------------------------------------------------------------------------------


def test_a_side_thread_is_linked_and_its_end_is_told(mine: Api) -> None:
    main = begun(mine, "Main")
    answer = mine.post(f"{THREADS}/{main}/links", {"title": "Details", "opening": "How?"})
    assert answer.status_code == 201, answer.text
    side = answer.json()["threadId"]
    assert read(mine, side)["sideOf"] == main
    assert until(lambda: read(mine, side).get("linkedFrom")) == [
        {"threadId": main, "title": "Main"}
    ] and "links" not in read(mine, side)
    [back] = [
        each for each in mine.get(f"/threads/{side}/events").json()["events"]
        if each["type"] == "thread.linked"
    ]  # fmt: skip
    assert back["content"] == {"thread": main, "name": "Main", "back": True}
    links = read(mine, main)["links"]
    assert links == [{"threadId": side, "title": "Details", "open": True}]
    told = mine.get(f"/threads/{main}/events").json()["events"][-1]
    assert told["type"] == "thread.linked" and told["content"]["thread"] == side
    answered(close(mine, side, decision="Like this."))
    _, summary = until(lambda: said(mine, main))[-1]
    assert summary == f"The side thread “Details” ({side}) is closed: Like this."
    assert read(mine, main)["links"][0]["open"] is False
    assert mine.post(f"/v1/host/moot/runs/{main}:verify").json()["identical"] is True
    row_of = mine.get(f"/threads/{main}/events").json()["events"][-1]
    assert (row_of["from"], row_of["meta"]["thread"]) == ("moot", side)
    assert row_of["meta"]["tags"] == ["coordinator", "side-thread"]


def test_a_link_that_is_sent_again_begins_one_side_thread(mine: Api) -> None:
    path, once = f"{THREADS}/{begun(mine, 'Main')}/links", {"Idempotency-Key": "side-once"}
    answers = [mine.post(path, {"title": "Details"}, headers=once) for _ in range(2)]
    assert [each.status_code for each in answers] == [201, 201]
    assert answers[0].json() == answers[1].json(), "the link, both times"


def test_a_thread_that_is_there_can_be_linked_and_no_other(mine: Api, foreign: Api) -> None:
    main, other = begun(mine, "Main"), begun(mine, "Other")
    assert mine.post(f"{THREADS}/{main}/links", {"thread": other}).status_code == 200
    strange = convened(foreign)
    with unchanged(mine, main):
        for body, status in (
            ({"thread": "th_none"}, 404), ({"thread": strange}, 404), ({"thread": main}, 400),
            ({}, 400), ({"title": ""}, 400),
        ):  # fmt: skip
            assert mine.post(f"{THREADS}/{main}/links", body).status_code == status, body
        assert steer(mine, main, {"link": {"thread": "th_none"}}).status_code == 404
        assert mine.post(f"{THREADS}/{main}/links", {"thread": other}).status_code == 200, "again"
    answered(close(mine, main))
    assert mine.post(f"{THREADS}/{main}/links", {"title": "Late"}).status_code == 409


# -- taken up again ------------------------------------------------------------------------------


def test_a_side_thread_that_cannot_be_linked_is_not_begun(mine: Api) -> None:
    main = begun(mine, "Main")
    stranger = key_as(mine, "host:stranger", tenant="keeping")
    before = [each["threadId"] for each in listed(mine)]
    assert stranger.post(f"{THREADS}/{main}/links", {"title": "Orphan"}).status_code == 422
    assert [each["threadId"] for each in listed(mine)] == before


def test_a_closed_thread_goes_on_in_a_new_one(mine: Api) -> None:
    thread = begun(mine, "Closed", participants=["codex"])
    codex = key_as(mine, "host:codex", tenant="keeping")
    question = mine.post(f"/threads/{thread}/events", {"content": "And?"}).json()["event"]
    meta = {"reply_to": question["id"]}
    codex.post(f"/threads/{thread}/events", {"content": "So.", "meta": meta})
    refused(mine.post(f"{THREADS}/{thread}:reopen", {}), 409, "conflict")
    answered(close(mine, thread, decision="No."))
    answer = mine.post(f"{THREADS}/{thread}:reopen", {"note": "we were wrong"})
    assert answer.status_code == 201, answer.text
    again = answer.json()["threadId"]
    assert answer.json()["reopenedFrom"] == thread and again.startswith("th_")
    assert read(mine, thread)["open"] is False and read(mine, again)["open"] is True
    assert said(mine, again) == said(mine, thread)[:-1]
    answered(tell(codex, again, "host:codex", "Yes, after all."))
    events = mine.get(f"/threads/{again}/events").json()["events"]
    times = [each["ts"] for each in events]
    assert times == sorted(set(times))
    asked, so = [each for each in events if each["type"] == "message"][:2]
    assert so["meta"]["reply_to"] == asked["id"] and asked["id"].startswith(again)
    assert (row(mine, again) or {})["forkedFrom"] == thread


def test_a_cancelled_thread_can_be_taken_up_as_well(mine: Api) -> None:
    thread = begun(mine, "Cancelled")
    mine.post(f"/threads/{thread}/events", {"content": "hello"})
    mine.post(f"/v1/runs/{thread}/cancel")
    mine.until(thread, "cancelled")
    again = mine.post(f"{THREADS}/{thread}:reopen", {}).json()["threadId"]
    assert said(mine, again) == [("user", "hello")]
    assert mine.post(f"/threads/{again}/events", {"content": "on"}).status_code == 200


# -- read by people ------------------------------------------------------------------------------


def test_controls_are_sentences_and_can_be_taken_back(mine: Api) -> None:
    thread = begun(mine, "Steered", participants=["codex"])

    def worded(content: dict[str, Any]) -> dict[str, Any]:
        answered(steer(mine, thread, content))
        return dict(mine.get(f"{THREADS}/{thread}/events").json()["events"][-1])

    muted = worded({"mute": {"targets": ["codex"], "seconds": 600}})
    assert muted["says"] == "user muted codex for 10 minutes"
    assert muted["undo"] == {"unmute": ["codex"]}
    assert worded(muted["undo"])["says"] == "user unmuted codex"
    first = mine.get(f"{THREADS}/{thread}/events").json()["events"]
    assert "undo" not in next(each for each in first if each["seq"] == muted["seq"])
    for content, sentence in (
        ({"pause": True}, "user paused the agents"),
        ({"discussion": {"on": True}}, "user let agents wake one another"),
        ({"invited_auto": {"on": True}}, "user asked for everybody's answer"),
        ({"ttl_seconds": 60}, "user let agents go on by themselves for 60 seconds"),
        ({"invite": "claude"}, "user invited claude"),
    ):
        found = worded(content)
        assert found["says"] == sentence
        before = read(mine, thread)["state"]
        worded(found["undo"])
        assert read(mine, thread)["state"] != before
    state = read(mine, thread)["state"]
    assert (state["paused"], state["discussion"], state["invited_auto"]) == (False, False, False)
    assert state["ttl_until"] is None and len(state["participants"]["invited"]) == 1
    assert "undo" not in worded({"prod": ["codex"]})


# -- short requests --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/threads", THREADS])
def test_a_thread_begins_with_a_title_with_others_and_with_a_question(api: Api, path: str) -> None:
    body = {"title": "Q1 prices", "participants": ["rex", "cy"], "opening": "Do we raise them?"}
    made = api.post(path, {**body, "policy": {"mode": "small"}}).json()
    thread = made.get("id", made.get("threadId"))
    view = api.get(f"{THREADS}/{thread}").json()
    assert (view["title"], view["floor"]["mode"]) == ("Q1 prices", "small")
    assert view["floor"]["outside"] == ["host:rex", "host:cy"]
    said = [each["content"] for each in events(api, thread) if each["type"] == "message"]
    assert said == ["Do we raise them?"]


def test_a_name_and_a_title_are_one_thing(api: Api) -> None:
    refused(api.post("/threads", {"name": "a", "title": "b"}), 400, "validation_error")
    assert api.post("/threads", {}).json()["name"] == "Untitled"


def test_who_joins_is_named_once_and_described(api: Api) -> None:
    thread = new(api)
    body = {"name": "rex", "profile": {"client": "codex", "roles": ["implementer"]}}
    made = api.post(f"{THREADS}/{thread}/join", body)
    assert made.status_code == 201 and made.json()["as"] == "host:rex"
    state = api.get(f"/threads/{thread}/state").json()["state"]
    [rex] = state["participants"]["invited"]
    assert rex["profile"]["client"] == "codex"
    assert post(api, thread, "Well?", to="implementer").json()["event"]["to"] == "rex"
    for wrong in ({}, {"name": "rex", "as": "rex"}):
        refused(api.post(f"{THREADS}/{thread}/join", wrong), 400, "validation_error")


def test_a_minute_is_waited_at_most(api: Api) -> None:
    thread = new(api)
    post(api, thread, "Well?", to="user:eve")
    path = f"{THREADS}/{thread}/next"
    assert api.get(path, params={"wait": 60, "as": "user:eve"}).status_code == 200
    assert api.get(path, params={"wait": 61, "as": "user:eve"}).status_code == 400


# -- refused links ---------------------------------------------------------------------------------


@pytest.fixture
def bench() -> Iterator[Bench]:
    with Bench() as made:
        yield made


def listed_ids(bench: Bench) -> list[str]:
    return [each.thread_id for each in bench.client.threads.list().threads]


def test_a_thread_that_closes_in_that_moment_leaves_no_side_thread(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = bench.client.threads.begin("Main")
    control = controls.control_command

    async def just_closed(request: Any, talk: Any, *given: Any, **more: Any) -> Any:
        run, _ = await find_thread(request)
        command = await control(request, talk, *given, **more)
        value = {"operation": "close", "decision": "Enough."}
        end = GateAnswer(node_id=talk.node_id, value=value, who=command.who, at=command.at)
        await request.services.host.handle(run.tenant, run.run_id, end)
        return command

    monkeypatch.setattr(controls, "control_command", just_closed)
    with pytest.raises(ApiError) as refused:
        main.side("Details")
    assert refused.value.code == "conversation_closed"
    assert listed_ids(bench) == [main.id]
