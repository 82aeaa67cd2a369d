"""Sensitive values: how they look in the log, and that nodes still see them."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from moot.core.commands import SetVariables
from moot.core.events import encode
from moot.core.runs.readiness import build_node_call
from moot.core.secrets import MASK, SHORTEST_SECRET, mask_sealed, mask_value
from moot.core.state.status import Status
from moot.core.workflows.node_types import ChannelWrite, Completed
from tests.support.core.simulator import Life, World, chain, compiled, definition, node, state
from tests.support.event_payloads import payload_json

SECRET = "correct horse battery"


def hashed(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@pytest.mark.parametrize(
    ("mode", "value", "seen"),
    [
        ("mask", SECRET, "[REDACTED]"),
        ("mask", None, "[REDACTED]"),
        ("omit", SECRET, UNSET),
        ("hash", "x", hashed(b'"x"')),
        ("hash", {"b": 1, "a": 2}, hashed(b'{"a":2,"b":1}')),
        ("passthrough", SECRET, SECRET),
        ("nonsense", SECRET, "[REDACTED]"),
    ],
)
def test_a_mode_shows_what_it_says(mode: str, value: Any, seen: Any) -> None:
    assert mask_value(mode, value) == seen


def test_a_hash_does_not_depend_on_the_order_of_keys() -> None:
    assert mask_value("hash", {"a": 1, "b": 2}) == mask_value("hash", {"b": 2, "a": 1})


def hidden(mode: str, *nodes: dict[str, Any], **given: Any) -> dict[str, Any]:
    return chain(
        *nodes,
        variables=[
            {"name": "secret", "type": "object", "sensitive": True, "defaultValue": SECRET},
            {"name": "plain", "type": "object", "defaultValue": "seen by all"},
        ],
        metadata={"complianceConfig": {"maskingMode": mode}},
        **given,
    )


def told_nowhere(life: Life, secret: str = SECRET) -> bool:
    text = secret.encode()
    return not any(text in encode(event) for event in life.log) and text not in state(life.run)


WORK = node("work", "acme.work", inputs={"key": {"type": "variable", "variableName": "secret"}})


def seen_by(life: Life, name: str = "work") -> Any:
    return build_node_call(life.run, life.flow.nodes[name], 0, life.sealed, 1)


@pytest.mark.parametrize("mode", ["mask", "omit", "hash"])
def test_a_sensitive_input_is_nowhere_in_the_log_but_reaches_the_node(mode: str) -> None:
    world = World()
    life = world.start(compiled(hidden(mode, WORK)), inputs={"secret": "another secret"})
    assert told_nowhere(life, "another secret") and told_nowhere(life)
    assert seen_by(life).inputs == {"key": "another secret"}
    assert seen_by(life).variables["secret"] == "another secret"
    shown = payload_json(life.log[0])
    expected = mask_value(mode, "another secret")
    assert shown["variables"].get("secret", UNSET) == expected
    assert shown["inputs"].get("secret", UNSET) == expected
    assert shown["variables"]["plain"] == "seen by all"


def test_passthrough_masks_nothing() -> None:
    life = World().start(compiled(hidden("passthrough", WORK)))
    assert life.run.variables["secret"] == SECRET


@pytest.mark.parametrize("mode", ["mask", "omit", "hash"])
def test_a_sensitive_variable_stays_so_when_it_changes(mode: str) -> None:
    world = World()
    life = world.start(compiled(hidden(mode, WORK)))
    world.take(life, SetVariables({"secret": "newer secret"}, world.at))
    assert told_nowhere(life, "newer secret") and told_nowhere(life)
    assert seen_by(life).inputs == {"key": "newer secret"}


@pytest.mark.parametrize(
    "carrier",
    [
        node("n", "core.setVariable", config={"name": "secret", "expression": "variables.secret"}),
        node("n", "core.setVariable", config={"name": "plain", "expression": "variables.secret"}),
        node("n", "core.getVariable", config={"name": "secret"}),
        node("n", "core.identity", inputs={"p": {"type": "variable", "variableName": "secret"}}),
        node("n", "core.identity", inputs={
            "p": {"type": "expression", "expression": "'Bearer ' + variables.secret"}}),
        node("n", "core.identity", inputs={
            "p": {"type": "expression", "expression": "{'deep': [variables.secret]}"}}),
        node("n", "core.fail", inputs={
            "message": {"type": "variable", "variableName": "secret"}}),
        node("n", "core.channelWrite", config={"channelName": "c", "reducer": "append"},
             inputs={"value": {"type": "variable", "variableName": "secret"}}),
    ],
    ids=["set itself", "set another", "get", "identity", "inside a text", "deep", "fail",
         "channel"],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["mask", "omit", "hash"])
def test_a_secret_is_not_told_by_the_nodes_that_carry_it(
    mode: str, carrier: dict[str, Any]
) -> None:
    life = World().start(compiled(hidden(mode, carrier)))
    assert life.run.terminal
    assert told_nowhere(life)


def test_a_later_node_sees_what_a_sensitive_port_carried() -> None:
    first = node("first", "acme.work", outputSensitivity={"token": True})
    port = {"token": {"type": "connection", "nodeId": "first", "outputKey": "token"}}
    world = World()
    life = world.start(compiled(chain(first, node("work", "acme.work", inputs=port))))
    world.finish(life, "first", Completed({"token": SECRET, "open": 1}))
    assert told_nowhere(life)
    assert life.run.nodes["first"].outputs == {"token": MASK, "open": 1}
    assert seen_by(life).inputs == {"token": SECRET}


def test_a_variable_that_no_longer_holds_the_secret_is_seen_as_it_is() -> None:
    """A copy of a secret is sealed too; overwritten with something public it is public."""
    copy = node("copy", "core.setVariable", config={"name": "plain"},
                inputs={"value": {"type": "variable", "variableName": "secret"}})  # fmt: skip
    over = node("over", "core.setVariable", config={"name": "plain", "value": "public"})
    port = {"p": {"type": "variable", "variableName": "plain"}}
    life = World().start(
        compiled(hidden("mask", copy, over, node("work", "acme.work", inputs=port)))
    )
    assert told_nowhere(life)
    assert life.run.variables["plain"] == "public"
    assert seen_by(life).inputs == {"p": "public"}


@pytest.mark.parametrize("mode", ["mask", "omit", "hash"])
def test_what_is_written_to_a_sensitive_channel_is_nowhere_in_the_log(mode: str) -> None:
    world = World()
    body = definition(
        [node("work", "acme.work")],
        channels={"c": {"reducer": "append", "sensitive": True}},
        metadata={"complianceConfig": {"maskingMode": mode}},
    )
    life = world.start(compiled(body))
    world.finish(life, "work", Completed(writes=(ChannelWrite(channel="c", value=SECRET),)))
    assert life.run.status is Status.COMPLETED
    assert told_nowhere(life)


def test_an_output_named_like_the_secret_is_hidden_too() -> None:
    world = World()
    life = world.start(compiled(hidden("mask", WORK)))
    world.finish(life, "work", Completed({SECRET: {SECRET: [SECRET]}, "open": 1}))
    assert life.run.status is Status.COMPLETED
    assert told_nowhere(life)
    assert (life.run.nodes["work"].outputs or {})["open"] == 1


def test_a_public_value_does_not_become_a_secret_by_standing_where_one_stood() -> None:
    world = World()
    body = hidden("mask", WORK, node("after", "acme.work"))
    life = world.start(compiled(body))
    world.take(life, SetVariables({"plain": "correct horse battery"}, world.at))
    world.take(life, SetVariables({"plain": "something public"}, world.at))
    assert "var:plain" not in life.sealed
    world.finish(life, "work", Completed({"said": "something public"}))
    assert life.run.nodes["work"].outputs == {"said": "something public"}


@pytest.mark.parametrize(
    "secret",
    ["2026", "2023", "wait", "core", "delay", "sub", "kid", "completed", "append", "fresh",
     "node", 1000, 2023, "1000", "drain-current-node", "T22:", "v"],
)  # fmt: skip
def test_a_secret_that_looks_like_part_of_the_record_breaks_no_record(secret: Any) -> None:
    """What the host writes about itself is no secret, whatever a secret happens to look like."""
    from moot.core.commands import PauseRun, ResumeRun, TimePassed

    kid = compiled(definition([node("wait", "core.delay", config={"ms": 1000})], id="kid"))
    world = World({"kid": kid})
    nodes = [
        node("wait", "core.delay", config={"ms": 1000}),
        node("fresh", "core.channelWrite", config={
            "channelName": "fresh", "reducer": "append", "value": "x", "ttlMs": 1000}),
        node("v", "core.setVariable", config={"name": "v", "value": 1}),
        node("sub", "core.subWorkflow", config={"workflowId": "kid"}),
        node("node", "acme.work"),
    ]  # fmt: skip
    life = world.start(compiled(hidden("mask", *nodes)), inputs={"secret": secret})
    due = life.run.nodes["wait"].due
    assert due is not None and due - life.run.nodes["wait"].started_at == 1000
    world.pass_time(1000)
    world.take(life, TimePassed(world.at))
    assert [entry["value"] for entry in life.run.channels["fresh"]] == ["x"]
    assert life.run.variables["v"] == 1
    child = world.child_of(life)
    world.pass_time(1000)
    world.take(child, TimePassed(world.at))
    world.tell_parent(child)
    assert life.run.children == {child.run.run_id: "completed"}
    world.take(life, PauseRun(world.at))
    world.finish(life, "node", Completed({"ok": True}))
    world.take(life, ResumeRun(world.at))
    assert life.run.status is Status.COMPLETED
    for event in life.log:
        assert MASK not in str(payload_json(event).get("nodeId", "")), event.type
        assert payload_json(event).get("name", "v") == "v"


WORDS = st.text("abc", max_size=12)


@given(st.lists(WORDS, max_size=8), st.lists(WORDS, max_size=8))
def test_of_many_secrets_nothing_is_left_in_any_text(secrets: list[str], said: list[str]) -> None:
    """However they overlap; and what holds none is as it was."""
    sealed = {f"var:{number}": each for number, each in enumerate(secrets)}
    shown = mask_sealed({"said": said, "all": "".join(said)}, sealed, "mask")
    long = [each for each in secrets if len(each) >= SHORTEST_SECRET]
    for text, seen in zip([*said, "".join(said)], [*shown["said"], shown["all"]], strict=True):
        assert not any(secret in seen for secret in long)
        assert seen == text or any(secret in text for secret in long)


def test_a_long_list_of_secrets_is_looked_for_at_once() -> None:
    """Pieces of the one times pieces of the other would be twenty minutes."""
    secrets = [f"s{number:06d}" for number in range(60_000)]
    said = [f"t{number:06d}" for number in range(60_000)]
    shown = mask_sealed([*said, f"and {secrets[7]}{secrets[8]}."], {"var:x": secrets}, "mask")
    assert shown == [*said, f"and {MASK}{MASK}."]
    assert mask_sealed({"copy": secrets, "of": [{"b": 1, "a": "x"}]}, {"y": secrets}, "mask") == {
        "copy": MASK, "of": [{"b": 1, "a": "x"}],
    }  # fmt: skip
    assert mask_sealed([{"b": 1, "a": "x"}, (1, [])], {"y": {"a": "x", "b": 1}}, "hash") == [
        mask_value("hash", {"a": "x", "b": 1}), (1, []),
    ]  # fmt: skip
