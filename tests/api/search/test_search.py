"""Everything that was said, asked and decided in a tenant is found by its words, by nobody else."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.api.caller import Api, definition
from tests.support.api.councils import (
    ADA,
    BO,
    CY,
    close,
    convened,
    joined,
    key_as,
    person,
    run_of,
    tell,
)
from tests.support.api.questions import answered, asked, council, refused

SEARCH = "/v1/host/moot/search"


def search(api: Api, q: str = "", **query: Any) -> dict[str, Any]:
    answer = api.get(SEARCH, params={"q": q, **query})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def found(api: Api, q: str = "", **query: Any) -> list[tuple[str, str]]:
    """Kind and text of what was found."""
    return [(each["kind"], each["snippet"]["text"]) for each in search(api, q, **query)["results"]]


@pytest.fixture(scope="module")
def thread(api: Api) -> str:
    """A council that has decided."""
    name = convened(api, ADA, BO, question="Is the quokka fed?", title="Quokkas in winter")
    answered(tell(api, name, ADA, "The quokka eats leaves, and the leaves are gone."))
    answered(tell(api, name, BO, "Then we buy hay.", to=ADA))
    decision = {
        "text": "Hay for every quokka", "votes": [{"by": ADA, "vote": "yes", "reason": "cheap"}],
        "dissent": [{"by": BO, "text": "zweifelhaft"}], "actionItems": ["cy: call the barn"],
    }  # fmt: skip
    answered(close(api, name, decision=decision))
    return name


def test_titles_turns_and_decisions_are_found(api: Api, thread: str) -> None:
    assert found(api, "quokka thread:" + thread) == [
        ("decision", "Hay for every quokka\nhost:ada\nyes\ncheap\nhost:bo\nzweifelhaft\n"
                     "cy: call the barn"),
        ("turn", "The quokka eats leaves, and the leaves are gone."),
        ("turn", "Is the quokka fed?"),
    ]  # fmt: skip
    assert found(api, "winter kind:thread") == [("thread", "Quokkas in winter")]
    assert found(api, "zweifelhaft") == found(api, "barn kind:decision")


def test_a_result_says_who_where_and_when(api: Api, thread: str) -> None:
    [hit] = search(api, "leaves", thread=thread)["results"]
    log = api.events(run_of(thread))
    assert log[hit["sequence"]]["eventId"] == hit["eventId"]
    assert log[hit["sequence"]]["timestamp"] == hit["at"]
    said = {name: hit[name] for name in ("kind", "runId", "threadId", "from", "turnIndex", "title")}
    assert said == {
        "kind": "turn", "runId": thread, "threadId": thread, "from": ADA, "turnIndex": 1,
        "title": "Quokkas in winter",
    }  # fmt: skip
    snippet = hit["snippet"]
    marked = [snippet["text"][first:last] for first, last in snippet["matches"]]
    assert (marked, snippet["start"]) == (["leaves", "leaves"], 0)
    [addressed] = search(api, "hay from:bo", thread=thread)["results"]
    assert addressed["to"] == ADA


def test_a_conversation_in_another_workflow_is_found_under_its_thread(api: Api) -> None:
    run_id = asked(api, council(ADA, BO, prompt="An axolotl?"))
    [hit] = search(api, "axolotl")["results"]
    assert hit["threadId"] == f"{run_id}~convo~1"
    assert found(api, "axolotl", thread=hit["threadId"]) == [("turn", "An axolotl?")]


def test_a_run_is_found_by_its_workflow_its_tags_and_what_it_was_given(api: Api) -> None:
    api.register(definition("wombat-report", [{"id": "n", "typeId": "core.noop"}]))
    done = api.run("wombat-report", inputs={"about": {"place": "Numbatland"}}, tags=["burrow"])
    for words in ("wombat report", "numbatland", "burrow kind:run"):
        [hit] = search(api, words)["results"]
        assert (hit["kind"], hit["runId"], hit["title"]) == ("run", done["runId"], "wombat-report")
        assert "threadId" not in hit


def test_what_is_masked_in_the_log_is_not_found(api: Api) -> None:
    hidden = {"name": "pin", "type": "string", "sensitive": True}
    flow = definition("vault", [{"id": "n", "typeId": "core.noop"}], variables=[hidden])
    name = api.register(flow)
    run = api.run(name, inputs={"pin": "thylacine77", "note": "pangolin"})
    if "thylacine77" in str(api.events(run["runId"])):
        pytest.fail("the log itself shows it")
    assert found(api, "pangolin") != []
    assert found(api, "thylacine77") == found(api, "thylac*") == []


def test_what_was_asked_for_in_a_fork_is_shown_once(api: Api) -> None:
    name = convened(api, question="A numbat or a tenrec?")
    answered(tell(api, name, ADA, "A tenrec, if you ask me"))
    branch = {"mode": "branch", "fromSeq": len(api.events(name))}
    fork = api.post(f"/v1/runs/{name}:fork", branch).json()["runId"]
    answered(tell(api, fork, BO, "No tenrec for me"))
    assert next(each["runId"] for each in search(api, "tenrec")["results"]) == fork
    assert found(api, "tenrec")[1:] == [
        ("turn", "A tenrec, if you ask me"), ("turn", "A numbat or a tenrec?")
    ]  # fmt: skip
    inside = [text for _, text in found(api, "tenrec", thread=fork)]
    assert inside[0] == "No tenrec for me" and "A numbat or a tenrec?" in inside


def test_pages_in_both_orders_have_everything_once(api: Api) -> None:
    name = convened(api, question="Start")
    for number in range(7):
        answered(person(api, name, "kakapo " * (number + 1)))
    texts = ["kakapo " * (number + 1) for number in range(7)]
    for order, wanted in (("newest", texts[::-1]), ("best", texts[::-1])):
        pages, cursor = [], {}
        while True:
            page = search(api, "kakapo", order=order, limit=3, **cursor)
            pages += [each["snippet"]["text"] for each in page["results"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert pages == wanted, order


def test_the_best_come_first_when_asked_for(api: Api) -> None:
    name = convened(api, question="Start")
    answered(person(api, name, "The dugong, the dugong, and again the dugong."))
    answered(person(api, name, "Something about a dugong " + "and much else " * 30))
    assert next(text[:10] for _, text in found(api, "dugong", order="best")) == "The dugong"
    assert next(text[:10] for _, text in found(api, "dugong")) == "Something "


def test_nobody_finds_anything_of_another_tenant(api: Api, foreign: Api, thread: str) -> None:
    for words in ("quokka", f"thread:{thread}", f"quokka thread:{thread}"):
        assert found(foreign, words) == []
    for words in ("kind:turn", "from:ada"):  # others of that tenant may have spoken
        hits = foreign.get(SEARCH, params={"q": words, "limit": 100}).json()
        assert thread not in str(hits) and "quokka" not in str(hits)
    theirs = convened(foreign, question="A quokka of our own")
    assert found(foreign, "quokka") == [("turn", "A quokka of our own")]
    assert "A quokka of our own" not in str(found(api, "quokka", limit=100))
    answered(close(foreign, theirs))


def test_only_who_may_read_runs_may_search(api: Api, thread: str) -> None:
    blind = key_as(api, "user:eve", scopes=["runs:create"])
    assert refused(blind.get(SEARCH), 403, "forbidden") == {"scopeRequired": "runs:read"}
    assert api.with_key(None).get(SEARCH).status_code == 401
    token = joined(api, convened(api, ADA, CY), ADA)
    assert token.get(SEARCH, params={"q": "quokka"}).status_code == 403


@pytest.mark.parametrize(
    ("query", "field"),
    [({"kind": "song"}, "kind"), ({"order": "worst"}, "order"), ({"q": "x" * 501}, "q"),
     ({"limit": "0"}, "limit"), ({"from": "x" * 501}, "from")],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_by_name(
    api: Api, query: dict[str, str], field: str
) -> None:
    details = refused(api.get(SEARCH, params=query), 400, "validation_error")
    assert details["field"] == field


@pytest.mark.parametrize("text", ["kind:decisions x", "x author:ada", "in:th_x", "KIND:nothing"])
def test_what_is_written_like_a_filter_and_is_none_is_refused(api: Api, text: str) -> None:
    answer = api.get("/v1/host/moot/search", params={"q": text})
    assert answer.status_code == 400 and answer.json()["details"]["field"] == "q"
    quoted = f'"{text}"'
    assert api.get("/v1/host/moot/search", params={"q": quoted}).status_code == 200


def test_a_filter_in_the_words_narrows_what_the_parameters_allow(api: Api, thread: str) -> None:
    where = {"kind": "thread,turn,decision", "q": "barn kind:decision"}
    results = api.get("/v1/host/moot/search", params=where).json()["results"]
    assert {each["kind"] for each in results} == {"decision"}
    for more in ({"kind": "run"}, {"from": "zork", "q": "from:ada"}):
        assert api.get("/v1/host/moot/search", params={**where, **more}).status_code == 400


def test_a_cursor_is_good_for_its_own_order_only(api: Api, thread: str) -> None:
    for order in ("newest", "best"):
        for cursor in ("x", "AAAA.1", "AAAA", "é", "."):
            answer = api.get(SEARCH, params={"q": "quokka", "order": order, "cursor": cursor})
            refused(answer, 400, "validation_error")


@given(st.text(max_size=40))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_at_all_is_a_query(api: Api, text: str) -> None:
    for order in ("newest", "best"):
        search(api, text, order=order)


@pytest.mark.parametrize(
    "text",
    ['"', '""', "AND", "OR NOT", "NEAR(a b)", "text:x", "marks:tacme", "{text}: x", "a^2", "(", "*",
     "-quokka", "from:", "kind:", "thread:", "thread:~~", 'from:"a b"', "a" * 490, "\x00", "'; --"],
)  # fmt: skip
def test_no_word_has_a_meaning_that_is_not_on_the_page(api: Api, text: str) -> None:
    search(api, text)
    search(api, f"quokka {text}")
