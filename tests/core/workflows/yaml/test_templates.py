"""Values and placeholders of the friendly form: what is written, and what arrives."""

from typing import Any

import pytest

from tests.support.core.flow_player import flow, nodes, value


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"Hello {who}"', "Hello Ada"),
        ('"{who}"', "Ada"),
        ('"{n}"', 3),
        ('"{ n }"', 3),
        ('"{n} of {n}"', "3 of 3"),
        ('"{yes}!"', "true!"),
        ('"{things}"', [1, {"a": None}]),
        ('"{things.1.a}"', None),
        ('"at {things.0}"', "at 1"),
        ('{a: "{n}", b: ["x {who}", 1.5, null, true]}', {"a": 3, "b": ["x Ada", 1.5, None, True]}),
        ('"{{who}} is {who}"', "{who} is Ada"),
        ('"{{}}"', "{}"),
        ('"a \\"quoted\\" \\\\ {who}\\n"', 'a "quoted" \\ Ada\n'),
        ('"{odd-name}"', "odd"),
        ('"is {odd-name}"', "is odd"),
        ('"{in} it is"', "7 it is"),
        ('""', ""),
        ("12", 12),
        ("-1.5e3", -1500.0),
        ("1.2.3", "1.2.3"),
        ("0123", 123),
        ("2024-01-01", "2024-01-01"),
        ("null", None),
    ],
)
def test_a_value_means(written: str, expected: Any) -> None:
    head = """
variables:
  who: {type: str, default: Ada}
  n: {type: int, default: 3}
  yes: {type: bool, default: true}
  things: {type: any, default: [1, {a: null}]}
  odd-name: {type: str, default: odd}
  in: {type: int, default: 7}
"""
    assert value(flow(f"  - set: {{x: {written}}}\n", head)) == expected


def test_null_and_booleans_can_stand_inside_a_text() -> None:
    steps = '  - set: {a: null, b: false}\n  - set: {x: "<{a}|{b}>"}\n'
    assert value(flow(steps)) == "<|false>"


def test_a_whole_placeholder_passes_the_variable_itself() -> None:
    found = nodes(flow('  - set: {x: "{a}"}\n', "inputs: {a: any}"))
    assert found["set-1"]["inputs"]["value"] == {"type": "variable", "variableName": "a"}


def test_the_output_of_a_step_can_be_named() -> None:
    steps = '  - {id: shout, node: acme.work}\n  - set: {x: "{shout.from}"}\n'
    found = nodes(flow(steps))["set-1"]["inputs"]["value"]
    assert found == {"type": "connection", "nodeId": "shout", "outputKey": "from"}
    assert value(flow(steps)) == "shout"
    assert value(flow(steps.replace("{shout.from}", "by {shout.from}"))) == "by shout"


def test_a_channel_can_be_named() -> None:
    steps = '  - write: {channel: log, value: {n: 1}}\n  - set: {x: "{log}"}\n'
    assert value(flow(steps, "channels: {log: append}")) == [{"n": 1}]
