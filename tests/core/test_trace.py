"""Trace context: what is well formed goes on, what is not is as if it had not been said."""

import re
import string

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.core import trace
from moot.core.trace import Trace, call_trace, parse_trace, parse_tracestate, run_trace

FORM = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]")

hexes = st.text("0123456789abcdef", min_size=1)
trace_ids = st.integers(1, 2**128 - 1).map(lambda n: f"{n:032x}")
span_ids = st.integers(1, 2**64 - 1).map(lambda n: f"{n:016x}")
flags = st.integers(0, 255).map(lambda n: f"{n:02x}")
members = st.tuples(
    st.from_regex(r"[a-z][a-z0-9_*/-]{0,9}", fullmatch=True),
    st.text(string.ascii_letters + string.digits, min_size=1, max_size=9),
).map("=".join)


@given(trace_ids, span_ids, flags)
def test_what_is_well_formed_is_read(trace_id: str, span_id: str, flag: str) -> None:
    found = parse_trace(f"00-{trace_id}-{span_id}-{flag}")
    assert found == Trace(trace_id, span_id, f"{int(flag, 16) & 1:02x}")
    assert parse_trace(found.traceparent) == found


@given(st.text() | st.tuples(hexes, hexes, hexes, hexes).map("-".join))
def test_nothing_that_is_said_breaks_anything(said: str) -> None:
    found = parse_trace(said, said)
    assert found is None or FORM.fullmatch(found.traceparent)
    assert len(parse_tracestate(said)) <= trace.LONGEST_STATE


BAD = [
    "", "00", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "00-" + "1" * 32 + "-" + "0" * 16 + "-01",
    "ff-" + "1" * 32 + "-" + "1" * 16 + "-01", "00-" + "A" * 32 + "-" + "1" * 16 + "-01",
    "00-" + "1" * 32 + "-" + "1" * 16 + "-01-more", "00-" + "1" * 31 + "-" + "1" * 16 + "-01",
    "00-" + "1" * 32 + "-" + "1" * 16 + "-01\r\nX: y",
]  # fmt: skip


@pytest.mark.parametrize("said", BAD)
def test_what_is_not_well_formed_is_not_read(said: str) -> None:
    assert parse_trace(said) is None


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    said = "cc-" + "1" * 32 + "-" + "2" * 16 + "-01-what-comes-later"
    assert parse_trace(said) == Trace("1" * 32, "2" * 16)


@given(st.lists(members, max_size=40, unique_by=lambda member: member.partition("=")[0]))
def test_a_state_is_kept_whole_or_not_at_all(given_members: list[str]) -> None:
    said = ", ".join(given_members)
    kept = parse_tracestate(said)
    whole = ",".join(given_members)
    fits = len(given_members) <= trace.MOST_MEMBERS and len(whole) <= trace.LONGEST_STATE
    assert kept == (whole if fits else "")


@pytest.mark.parametrize("said", ["a", "=1", "a=1,a=2", "A=1", "a=\x01", "a=1,b", "a=x=y"])
def test_a_state_with_a_mistake_is_dropped(said: str) -> None:
    found = parse_trace("00-" + "1" * 32 + "-" + "2" * 16 + "-00", said)
    assert found is not None and found.state == ""


@given(st.text(min_size=1), st.text(min_size=1), trace_ids, span_ids)
def test_spans_follow_from_their_names(run_id: str, name: str, trace_id: str, span: str) -> None:
    alone = run_trace(run_id, None)
    assert parse_trace(alone.traceparent) == alone == run_trace(run_id, None)
    inside = run_trace(run_id, Trace(trace_id, span, "00", "a=1"))
    assert inside == Trace(trace_id, alone.span_id, "00", "a=1")
    call = call_trace(inside, name)
    assert call.trace_id == trace_id and call.span_id != inside.span_id
    assert parse_trace(call.traceparent, call.state) == call
