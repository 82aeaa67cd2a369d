"""Derived ids and the written form of instants."""

import base64
import hashlib
import re
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
from hypothesis import given

from moot.core.events import event_id, iso, millis
from moot.core.ids import derived_id, logical_invocation_id
from tests.support.core.random_flows import examples

words = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@examples(100)
@given(words, st.lists(words, min_size=1, max_size=4))
def test_a_derived_id_is_always_the_same_and_looks_like_any_other(
    prefix: str, parts: list[str]
) -> None:
    found = derived_id(prefix, *parts)
    assert found == derived_id(prefix, *parts)
    assert re.fullmatch("[a-z2-7]{20}", found[len(prefix) :])


@examples(100)
@given(st.lists(words, min_size=1, max_size=4), st.lists(words, min_size=1, max_size=4))
def test_other_parts_make_another_id(one: list[str], other: list[str]) -> None:
    assert (derived_id("run_", *one) == derived_id("run_", *other)) is (one == other)


def test_parts_do_not_run_into_each_other() -> None:
    assert derived_id("", "ab", "c") != derived_id("", "a", "bc")


def test_an_invocation_id_is_the_published_formula() -> None:
    """base64url without padding of sha256 over the parts joined by NUL (protocol 7.2)."""
    found = logical_invocation_id("tenant", "run", "node", 1, "openai:chat")
    preimage = b"openwop:activity:v2\0tenant\0run\0node\x001\0openai:chat"
    expected = base64.urlsafe_b64encode(hashlib.sha256(preimage).digest()).rstrip(b"=").decode()
    assert found == expected


def test_each_part_of_an_invocation_id_counts() -> None:
    base = ("t", "r", "n", 1, "p")
    others = [("x", "r", "n", 1, "p"), ("t", "x", "n", 1, "p"), ("t", "r", "x", 1, "p"),
              ("t", "r", "n", 2, "p"), ("t", "r", "n", 1, "x")]  # fmt: skip
    assert len({logical_invocation_id(*each) for each in [base, *others]}) == 6


def test_event_ids_follow_from_run_and_sequence() -> None:
    assert event_id("run_a", 12) == "run_a.12"


# -- times ---------------------------------------------------------------------------------------

instants = st.integers(0, 4_102_444_800_000_000)  # to the year 2100


@examples(200)
@given(instants)
def test_an_instant_is_read_as_it_was_written(micros: int) -> None:
    text = iso(micros)
    assert millis(text) == micros // 1000
    assert datetime.fromisoformat(text) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
        microseconds=micros
    )


@examples(200)
@given(instants, instants)
def test_texts_of_instants_sort_as_the_instants_do(one: int, other: int) -> None:
    assert (iso(one) < iso(other)) is (one < other)


def test_an_instant_has_microseconds_and_says_utc() -> None:
    assert iso(1_700_000_000_000_007) == "2023-11-14T22:13:20.000007Z"
