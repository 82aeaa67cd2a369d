"""Reducers (protocol 10.2), time to live (10.6), bounds and access (10.3)."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.core.events import decode, encode
from moot.core.state.run import fold
from moot.core.state.status import Status
from moot.core.workflows import channels
from moot.core.workflows.channels import ChannelRule, has_access, reduce_channel, stored_value
from moot.core.workflows.node_types import ChannelWrite, Completed
from moot.core.workflows.schema import ChannelAccess, ChannelDef
from tests.support.core.random_flows import VALUES, examples
from tests.support.core.simulator import Life, World, chain, compiled, definition, node
from tests.support.event_payloads import payload_json


def folded(rule: ChannelRule, writes: list[Any], at: int = 0) -> Any:
    current: Any = None
    for write in writes:
        current = reduce_channel(rule, current, stored_value(rule, write, at), at)
    return current


def vote(user: str, action: str = "yes") -> dict[str, str]:
    return {"userId": user, "action": action}


def message(name: str, content: str = "") -> dict[str, str]:
    return {"messageId": name, "content": content}


@pytest.mark.parametrize(
    ("reducer", "writes", "state"),
    [
        ("replace", [1, 2], 2),
        ("replace", [[1], None], None),
        ("append", [1, [2], None], [1, [2], None]),
        ("merge", [{"a": 1, "b": {"x": 1}}, {"b": {"y": 2}}], {"a": 1, "b": {"y": 2}}),
        ("counter", [1, 2.5, -3], 0.5),
        ("votes", [vote("a"), vote("b"), vote("a", "no")], [vote("b"), vote("a", "no")]),
        ("feedback", [{"feedback": "x"}, {"feedback": "x"}], [{"feedback": "x"}] * 2),
        ("message", [message("1", "x"), message("1", "y")], [message("1", "x")]),
        ("vendor.acme.odd", [1, 2], 2),
    ],
)  # fmt: skip
def test_a_reducer_makes_of_the_writes_what_the_protocol_says(
    reducer: str, writes: list[Any], state: Any
) -> None:
    assert folded(ChannelRule(reducer), writes) == state


REDUCERS = ("replace", "append", "merge", "counter", "votes", "feedback", "message", "vendor.a.b")
values = st.sampled_from(VALUES)


@examples(300)
@given(
    st.lists(
        st.tuples(
            st.builds(
                ChannelRule,
                st.sampled_from(REDUCERS),
                st.sampled_from([0, 5]),
                st.sampled_from([0, 2]),
            ),
            values,
            st.integers(0, 20),
        )
    ),
    values,
)
def test_a_fold_over_any_writes_is_total(
    writes: list[tuple[ChannelRule, Any, int]], current: Any
) -> None:
    """Also over such as ``check`` would have refused, and over other rules' leavings."""
    for rule, value, at in writes:
        copy = list(current) if isinstance(current, list) else current
        before = encode_plain([value, current])
        after = reduce_channel(rule, copy, value, rule.moment_of(value, at))
        assert encode_plain([value, current]) == before, "a write was changed by being folded"
        current = after


def encode_plain(value: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(value)


@examples(100)
@given(st.lists(st.integers(-5, 5)))
def test_counting_does_not_depend_on_the_order(numbers: list[int]) -> None:
    assert (folded(ChannelRule("counter"), numbers) or 0) == sum(numbers)
    assert folded(ChannelRule("counter"), numbers) == folded(ChannelRule("counter"), numbers[::-1])


@examples(100)
@given(st.lists(st.sampled_from("abc").map(vote)))
def test_everybody_has_one_vote_and_it_is_the_last(votes: list[dict[str, str]]) -> None:
    found = folded(ChannelRule("votes"), votes) or []
    assert {entry["userId"] for entry in found} == {entry["userId"] for entry in votes}
    assert len(found) == len({entry["userId"] for entry in found})


@examples(100)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.text(max_size=2))))
def test_a_message_is_there_once_as_it_first_came(sent: list[tuple[str, str]]) -> None:
    found = folded(ChannelRule("message"), [message(*each) for each in sent]) or []
    first: dict[str, str] = {}
    for name, content in sent:
        first.setdefault(name, content)
    assert [(entry["messageId"], entry["content"]) for entry in found] == list(first.items())


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers()), max_size=20), st.integers(1, 10))
def test_a_timed_channel_holds_what_is_young_enough(
    writes: list[tuple[int, int]], ttl: int
) -> None:
    rule, current, at = ChannelRule("append", ttl), None, 0
    kept: list[dict[str, int]] = []
    for later, value in writes:
        at += later
        kept = [entry for entry in kept if entry["_ts"] >= at - ttl]
        kept.append({"value": value, "_ts": at})
        current = reduce_channel(rule, current, stored_value(rule, value, at), at)
        assert current == kept


@examples(60)
@given(
    st.lists(st.integers(), min_size=1), st.integers(1, 4), st.sampled_from(["append", "feedback"])
)
def test_a_full_list_drops_its_oldest(entries: list[int], size: int, reducer: str) -> None:
    assert folded(ChannelRule(reducer, 0, size), entries) == entries[-size:]


def test_time_comes_before_size() -> None:
    """What has expired does not push out what has not."""
    rule = ChannelRule("append", 10, 2)
    current = reduce_channel(rule, None, stored_value(rule, "old", 0), 0)
    current = reduce_channel(rule, current, stored_value(rule, "new", 8), 8)
    current = reduce_channel(rule, current, stored_value(rule, "newest", 11), 11)
    assert [entry["value"] for entry in current] == ["new", "newest"]


# -- writes through a run ------------------------------------------------------------------------


def write(name: str, value: Any, reducer: str = "append", **more: Any) -> dict[str, Any]:
    return {"channelName": name, "value": value, "reducer": reducer, **more}


def wrote(*writes: dict[str, Any], **given: Any) -> tuple[World, Life]:
    nodes = [node(f"w{n}", "core.channelWrite", config=each) for n, each in enumerate(writes)]
    world = World()
    return world, world.start(compiled(chain(*nodes, **given)))


def test_a_write_is_recorded_as_it_came_with_the_rule_it_is_folded_by() -> None:
    _, life = wrote(write("c", 1, "counter"), write("c", 2, "counter"))
    said = [payload_json(event) for event in life.told("channel.written")]
    assert [(each["value"], each["reducer"]) for each in said] == [(1, "counter"), (2, "counter")]
    assert life.run.channels == {"c": 3}


def test_the_declared_reducer_wins_over_the_nodes() -> None:
    _, life = wrote(write("c", 1), write("c", 2), channels={"c": {"reducer": "counter"}})
    assert life.run.channels == {"c": 3}
    assert {payload_json(event)["reducer"] for event in life.told("channel.written")} == {"counter"}


def test_a_declared_default_is_where_the_channel_begins() -> None:
    declared = {
        "list": {"reducer": "append", "default": [0]},
        "sum": {"reducer": "counter", "default": 5},
    }
    _, life = wrote(write("list", 1), write("sum", 1), channels=declared)
    assert life.run.channels == {"list": [0, 1], "sum": 6}


def test_runs_do_not_share_the_lists_of_their_definition() -> None:
    flow = compiled(
        chain(
            node("w1", "core.channelWrite", config=write("c", ["seed"], "replace")),
            node("w2", "core.channelWrite", config=write("c", "more")),
            channels={"d": {"reducer": "append", "default": ["seed"]}},
        )
    )
    world = World()
    first, second = world.start(flow), world.start(flow)
    assert first.run.channels == second.run.channels == {"c": ["seed", "more"], "d": ["seed"]}
    assert flow.nodes["w1"].definition.config["value"] == ["seed"]
    written = payload_json(decode(encode(first.told("channel.written")[0])))["value"]
    assert written == ["seed"], "the record of the first write has grown"


def test_an_entry_of_a_timed_channel_carries_its_time() -> None:
    _, life = wrote(write("c", "a", ttlMs=100))
    written = life.told("channel.written")[0]
    assert life.run.channels["c"] == [payload_json(written)["value"]]
    assert payload_json(written)["value"] == {"value": "a", "_ts": life.run.channels["c"][0]["_ts"]}
    assert isinstance(life.run.channels["c"][0]["_ts"], int)


def test_the_published_example_of_a_timed_channel() -> None:
    """a, b, c with 200 ms to live, 300 ms of waiting, then d: only d is left."""
    world = World()
    nodes = [
        *(node(n, "core.channelWrite", config=write("events", n, ttlMs=200)) for n in "abc"),
        node("wait", "core.delay", config={"ms": 300}),
        node("d", "core.channelWrite", config=write("events", "d", ttlMs=200)),
    ]
    life = world.start(compiled(chain(*nodes)))
    assert [entry["value"] for entry in life.run.channels["events"]] == ["a", "b", "c"]
    world.pass_time(300)
    from moot.core.commands import TimePassed

    world.take(life, TimePassed(world.at))
    assert life.run.status is Status.COMPLETED
    assert [entry["value"] for entry in life.run.channels["events"]] == ["d"]
    assert fold(life.run.run_id, life.log).channels == life.run.channels


@pytest.mark.parametrize("reducer", ["replace", "merge", "counter"])
def test_time_to_live_means_nothing_to_what_is_no_list_of_entries(reducer: str) -> None:
    """They keep what they hold, and a ``_ts`` of the writer's own is only a field."""
    value: Any = 1 if reducer == "counter" else {"messageId": "1", "_ts": "whenever"}
    other: Any = 1 if reducer == "counter" else {"messageId": "2", "_ts": "ever"}
    _, life = wrote(write("c", value, reducer, ttlMs=1), write("c", other, reducer, ttlMs=1))
    assert life.run.status is Status.COMPLETED
    expected = {"replace": other, "merge": other, "counter": 2}
    assert life.run.channels["c"] == expected[reducer]


def test_a_vote_with_a_time_of_its_own_is_a_vote() -> None:
    _, life = wrote(
        write("c", vote("a") | {"_ts": 5}, "votes"), write("c", vote("a", "no"), "votes")
    )
    assert life.run.status is Status.COMPLETED
    assert life.run.channels["c"] == [vote("a", "no")]


@pytest.mark.parametrize(
    ("reducer", "value"),
    [("merge", [1]), ("counter", "1"), ("counter", True), ("votes", {"user": 1}), ("votes", "a"),
     ("message", {"messageId": 1}), ("message", "hello")],
)  # fmt: skip
def test_a_write_of_the_wrong_shape_fails_its_node_and_is_not_recorded(
    reducer: str, value: Any
) -> None:
    _, life = wrote(write("c", value, reducer, ttlMs=0))
    assert life.run.error is not None and life.run.error.code == "validation_error"
    assert not life.told("channel.written")


@pytest.mark.parametrize(
    ("reducer", "writes", "fits"),
    [
        ("merge", [{"a": 1}, {"b": 1}], True),
        ("merge", [{"a": 1, "b": 1}, {"c": 1}], False),
        ("merge", [{"a": 1, "b": 1}, {"a": 2}], True),
        ("message", [{"messageId": "1"}, {"messageId": "2"}, {"messageId": "3"}], False),
        ("replace", [[1, 2, 3]], False),
        ("replace", [[1, 2]], True),
    ],
)
def test_what_does_not_drop_its_oldest_refuses_what_is_too_much(
    reducer: str, writes: list[Any], fits: bool
) -> None:
    _, life = wrote(*(write("c", value, reducer, maxSize=2) for value in writes))
    assert life.run.status is (Status.COMPLETED if fits else Status.FAILED)


def test_a_repeated_message_is_recorded_once() -> None:
    """Also when both come in one outcome, so that nobody has seen the first yet."""
    world = World()
    life = world.start(compiled(chain(node("work", "acme.work"))))
    again = ChannelWrite(channel="m", value=message("1"), reducer="message")
    world.finish(life, "work", Completed(writes=(again, again)))
    assert len(life.told("channel.written")) == 1
    assert life.run.messages == {"m": 1}


def test_messages_stay_in_the_log_and_out_of_the_state() -> None:
    _, life = wrote(write("m", message("1"), "message"), write("m", message("1"), "message"))
    assert life.run.messages == {"m": 1} and "m" not in life.run.channels


def test_a_reader_who_knows_only_append_gets_the_same_messages() -> None:
    """The published payload has no word for 'message'."""
    _, life = wrote(write("m", message("1"), "message"), write("m", message("2"), "message"))
    said = [payload_json(event) for event in life.told("channel.written")]
    assert {each["reducer"] for each in said} == {"append"}
    assert [each["value"] for each in said] == [message("1"), message("2")]


@pytest.mark.parametrize(
    ("access", "allowed"),
    [
        ("public", True),
        ("private", False),
        ({"writers": ["w0"]}, True),
        ({"writers": ["core.*"]}, True),
        ({"writers": ["*"]}, True),
        ({"writers": ["other", "acme.*"]}, False),
        ({"writers": []}, False),
        ({"readers": []}, True),
        ({}, True),
    ],
)
def test_only_who_may_write_does(access: Any, allowed: bool) -> None:
    _, life = wrote(write("c", 1), channels={"c": {"reducer": "append", "access": access}})
    assert life.run.status is (Status.COMPLETED if allowed else Status.FAILED)
    if not allowed:
        assert life.run.error is not None
        assert life.run.error.code == "channel_access_denied"
        assert "c" not in life.run.channels


def test_a_node_that_may_not_read_a_channel_does_not_see_it() -> None:
    declared = {"c": {"reducer": "append", "default": [1], "access": {"readers": ["friend"]}}}
    port = {"p": {"type": "expression", "expression": "channels.c[0]"}}
    for name, status in (("friend", Status.COMPLETED), ("stranger", Status.FAILED)):
        body = definition([node(name, "core.identity", inputs=port)], channels=declared)
        world = World()
        assert world.start(compiled(body)).run.status is status


def test_access_is_by_node_id_or_by_type_with_a_star() -> None:
    access = ChannelAccess(readers=["a", "acme.*"])
    assert has_access(access, "readers", "a", "core.noop")
    assert has_access(access, "readers", "b", "acme.deep.type")
    assert not has_access(access, "readers", "acme", "core.noop")
    assert not has_access(access, "readers", "acme.x", "core.noop"), "a star is about types"


def test_a_rule_says_what_a_closed_payload_has_no_room_for() -> None:
    assert ChannelRule("append").hints() is None
    assert ChannelRule("append", 5, 6).hints() == {"ttlMs": 5, "maxSize": 6}
    assert ChannelRule("message").hints() == {"reducer": "message"}
    assert channels.channel_rule(ChannelDef(reducer="counter")) == ChannelRule("counter")
