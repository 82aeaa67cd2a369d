"""Names of workflows on other hosts, and what a caller says of a parent."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.core.errors import BadRequest
from moot.core.payloads.runs import PeerOrigin
from moot.core.workflows import peer_ids
from moot.core.workflows.definition import parse_definition
from moot.core.workflows.peer_ids import (
    format_origin,
    is_host_url,
    is_peer_id,
    parse_origin,
    split_peer_id,
)
from moot.core.workflows.schema import WORKFLOW_ID

names = st.from_regex(peer_ids.NAME, fullmatch=True)
workflows = st.from_regex(peer_ids.WORKFLOW, fullmatch=True)


@given(names, workflows)
def test_a_name_and_a_workflow_make_an_id_and_come_apart_again(name: str, workflow: str) -> None:
    assert split_peer_id(f"{name}/{workflow}") == (name, workflow)


@given(st.from_regex(f"^{WORKFLOW_ID.strip('^$')}$", fullmatch=True))
def test_no_workflow_of_this_host_is_taken_for_another_ones(workflow: str) -> None:
    assert not is_peer_id(workflow) and split_peer_id(workflow) is None


@pytest.mark.parametrize("said", ["lab/", "/w", "Lab/w", "lab/w/x", "lab/../w", "a b/w", "lab/w?x"])
def test_what_is_not_well_formed_names_nobody(said: str) -> None:
    assert is_peer_id(said) and split_peer_id(said) is None


def test_a_workflow_cannot_be_registered_under_the_name_of_one_elsewhere() -> None:
    body = {
        "id": "lab/w", "name": "w", "version": "1", "edges": [], "triggers": [], "variables": [],
        "metadata": {}, "settings": {},
        "nodes": [{"id": "n", "typeId": "core.noop", "name": "n", "position": {"x": 0, "y": 0},
                   "config": {}, "inputs": {}}],
    }  # fmt: skip
    with pytest.raises(BadRequest):
        parse_definition(body)


ADDRESSES = {
    "https://lab.example": True, "http://127.0.0.1:7666": True, "https://lab.example/moot": True,
    "http://[::1]:80": True, "ftp://lab.example": False, "https://": False, "lab.example": False,
    "https://me:secret@lab.example": False, "https://lab.example/?q": False,
    "https://lab.example/#f": False, "https://lab.example:0": False, "http://a b": False,
    "http://a:99999": False, 'http://a"b': False, "http://a\r\nX: y": False, "": False,
    "http://" + "a" * 600: False, "http://[": False,
}  # fmt: skip


@pytest.mark.parametrize(("url", "good"), ADDRESSES.items())
def test_an_address_is_that_of_a_host_and_nothing_more(url: str, good: bool) -> None:
    assert is_host_url(url) is good


origins = st.builds(
    PeerOrigin,
    run_id=st.from_regex(peer_ids.RUN_ID, fullmatch=True),
    host_id=st.from_regex(peer_ids.HOST_ID, fullmatch=True),
    well_known_url=st.sampled_from([url for url, good in ADDRESSES.items() if good]),
    cause=st.sampled_from(peer_ids.CAUSES),
    event_id=st.none() | st.from_regex(peer_ids.EVENT_ID, fullmatch=True),
    depth=st.integers(0, peer_ids.LARGEST),
    tree=st.none() | st.integers(0, peer_ids.LARGEST),
)


@given(origins)
def test_what_is_written_of_a_parent_is_read_again(origin: PeerOrigin) -> None:
    assert parse_origin(format_origin(origin)) == origin
    assert "\n" not in format_origin(origin) and format_origin(origin).isascii()


@given(st.text() | st.tuples(origins.map(format_origin), st.text(max_size=5)).map("".join))
def test_whatever_a_caller_says_is_read_or_ignored(said: str) -> None:
    found = parse_origin(said)
    assert found is None or parse_origin(format_origin(found)) == found


GOOD = 'run_1; host="h"; url="https://a.example/x"; cause=core.dispatch'


@pytest.mark.parametrize(
    "said",
    ["", ";" * 50, GOOD.replace("run_1", "run 1"), GOOD.replace("core.dispatch", "magic"),
     GOOD.replace("https:", "javascript:"), GOOD + "; host=x", GOOD + "; depth=-1",
     GOOD + "; depth=99999999", GOOD + "; tree=many", GOOD.replace('host="h"; ', ""),
     GOOD + '; event="a b"'],
)  # fmt: skip
def test_a_parent_that_is_half_told_is_not_told(said: str) -> None:
    assert parse_origin(GOOD) is not None and parse_origin(said) is None
