"""Mistakes in a workflow file: each one names the file, the line and the nearest valid word."""

import pytest

from moot.core.workflows.yaml import FlowFileError, compile_yaml
from moot.core.workflows.yaml.source import MAX_ALIASES, MAX_BYTES, MAX_DEPTH

HEAD = """workflow: sample
inputs: {customer: str, amount: number, things: list}
channels: {log: append}
steps:
"""


def refusal(text: str) -> FlowFileError:
    with pytest.raises(FlowFileError) as caught:
        compile_yaml(text, "flows/sample.yaml")
    error = caught.value
    assert str(error) == f"flows/sample.yaml:{error.line}: {error.message}"
    return error


#: what stands from line 5 on, the line of the mistake, and what is said
STEPS = [
    ("- dely: 2s", 5, "there is no step 'dely' — did you mean 'delay'?"),
    ("- set: {a: 1}\n- id: x\n  zzz: 2s", 7, "there is no step 'zzz' — use one of for_each, run"),
    ("- {}", 5, "there is no step ''"),
    ("- delay", 5, "a step must be a mapping"),
    ("- set: {a: 1}\n  delay: 2s", 6, "'set' and 'delay' are two steps"),
    (
        "- delay: 2s\n  retrys: 2",
        6,
        "unknown word 'retrys' in a 'delay' step — did you mean 'retries'?",
    ),
    ("- delay: 2x", 5, "'2x' is not a duration; write 250ms, 2s, 5m, 1h"),
    ("- delay: -5", 5, "'-5' is not a duration"),
    ("- delay: true", 5, "'true' is not a duration"),
    (
        '- set:\n    greeting: "Hi {custmer}"',
        6,
        "'{custmer}' names nothing known here — did you mean 'customer'?",
    ),
    ('- set: {a: "{later}"}\n- set: {later: 1}', 5, "'{later}' names nothing known here"),
    ('- set: {a: 1, b: "{a}"}', 5, "'{a}' is set in this same step; set it in a step before"),
    ('- set: {a: "{1 + 1}"}', 5, "'{1 + 1}' is not a name in braces; write '{{' and '}}'"),
    ('- set: {a: "list: {things}"}', 5, "'{things}' is an array and cannot stand inside a text"),
    ("- set: {}", 5, "'set' needs at least one variable"),
    ("- set: {a b: 1}", 5, "'a b' is not a name for a variable"),
    ("- set: {amount: many}", 5, "variable 'amount' is declared as number; 'many' is not one"),
    ("- set: {log: 1}", 5, "'log' is a channel — use a 'write' step"),
    ("- set: greeting", 5, "'set' must be a mapping"),
    (
        "- write: {channel: lgo, value: 1}",
        5,
        "there is no channel 'lgo' here — did you mean 'log'?",
    ),
    ("- write: {channel: log}", 5, "'write' needs 'value'"),
    (
        "- write: {chanel: log, value: 1}",
        5,
        "unknown word 'chanel' in 'write' — did you mean 'channel'?",
    ),
    ("- run: Other Flow", 5, "'Other Flow' is not the id of a workflow"),
    (
        "- run: other\n  with: {a: amuont}",
        6,
        "there is no variable 'amuont' here — did you mean 'amount'?",
    ),
    ("- run: other\n  into: {a: 3}", 6, "into.a must be a text"),
    (
        "- run: other\n  on_failure: absrob",
        6,
        "'absrob' is not a way to go on after a failure — did you mean 'absorb'?",
    ),
    (
        "- for_each: thigns\n  run: other",
        5,
        "there is no variable 'thigns' here — did you mean 'things'?",
    ),
    ("- for_each: things", 5, "a 'for_each' step needs 'run'"),
    ("- for_each: things\n  run: other\n  max: 0", 7, "max must be a whole number from 1"),
    (
        "- when: variables.amuont > 1\n  then: []",
        5,
        "there is no variable 'amuont' here — did you mean 'amount'?",
    ),
    ("- when: variables.amount >\n  then: []", 5, "the expression cannot be read"),
    (
        '- when: "{amount} > 100"\n  then: []',
        5,
        "in an expression write variables.name, without braces",
    ),
    ("- when: variables.amount > 1", 5, "a 'when' step needs 'then'"),
    (
        "- when: variables.amount > 1\n  the: []",
        6,
        "unknown word 'the' in a 'when' step — did you mean 'then'?",
    ),
    ("- when: variables.amount > 1\n  then: {delay: 1}", 6, "'then' must be a list"),
    (
        "- when: variables.amount > 1\n  then: []\n  retries: 1",
        7,
        "'retries' goes on the steps inside",
    ),
    ("- parallel: {}", 5, "'parallel' needs at least one branch"),
    (
        '- parallel: {left: [{set: {a: 1}}],\n  right: [{set: {b: "{a}"}}]}',
        6,
        "'{a}' names nothing known here",
    ),
    ("- parallel: {left: {delay: 1}}", 5, "'left' must be a list"),
    ("- fail: {cod: x}", 5, "unknown word 'cod' in 'fail' — did you mean 'code'?"),
    ("- fail: 3", 5, "the message must be a text"),
    ("- node: Acme Shout", 5, "'Acme Shout' is not a node type"),
    ("- node: acme.shout\n  config: [1]", 6, "'config' must be a mapping"),
    (
        "- node: acme.shout\n  input: {a: 1}",
        6,
        "unknown word 'input' in a 'node' step — did you mean 'inputs'?",
    ),
    ("- {delay: 1, id: a}\n- {delay: 1, id: a}", 6, "the id 'a' is used twice"),
    ("- {delay: 1, id: a b}", 5, "'a b' is not an id"),
    ("- {delay: 1, retries: -1}", 5, "retries must be a whole number from 0"),
    ("- {delay: 1, timeout: soon}", 5, "'soon' is not a duration"),
    ("- {delay: 1, on_error: []}", 5, "on_error needs at least one step"),
    ("- {delay: 1, on_error: [{dely: 1}]}", 5, "did you mean 'delay'?"),
]


@pytest.mark.parametrize(("steps", "line", "message"), STEPS, ids=[row[2] for row in STEPS])
def test_a_mistake_in_a_step_is_named(steps: str, line: int, message: str) -> None:
    error = refusal(HEAD + steps + "\n")
    assert message in error.message
    assert error.line == line


#: the whole file, the line of the mistake, and what is said
FILES = [
    ("", 1, "the file is empty"),
    ("- a", 1, "the file must be a mapping"),
    ("workflow: a\nstep: []", 2, "unknown word 'step' in the file — did you mean 'steps'?"),
    ("workflow: a", 1, "the file has no 'steps'"),
    ("steps: [{delay: 1}]", 1, "the file has no 'workflow'"),
    ("workflow: Big Flow\nsteps: [{delay: 1}]", 1, "'Big Flow' is not an id"),
    ("workflow: a\nsteps: []", 2, "a workflow needs at least one step"),
    ("workflow: a\nsteps: later", 2, "steps must be a list"),
    (
        "workflow: a\ninputs:\n  b: strin\nsteps: [{delay: 1}]",
        3,
        "'strin' is not a type — did you mean 'string'?",
    ),
    (
        "workflow: a\ninputs:\n  b: {typ: str}\nsteps: [{delay: 1}]",
        3,
        "unknown word 'typ' in 'b' — did you mean 'type'?",
    ),
    (
        "workflow: a\ninputs:\n  b: {type: int,\n    default: x}\nsteps: [{delay: 1}]",
        4,
        "the default of 'b' is not a number",
    ),
    (
        "workflow: a\ninputs:\n  b: {required: maybe}\nsteps: [{delay: 1}]",
        3,
        "required must be true or false",
    ),
    (
        "workflow: a\ninputs: {b: str}\nvariables:\n  b: str\nsteps: [{delay: 1}]",
        4,
        "'b' is declared twice",
    ),
    (
        "workflow: a\ninputs:\n  b: str\nchannels: {b: append}\nsteps: [{delay: 1}]",
        3,
        "'b' is declared twice",
    ),
    (
        "workflow: a\nchannels:\n  b: apend\nsteps: [{delay: 1}]",
        3,
        "'apend' is not a reducer — did you mean 'append'?",
    ),
    (
        "workflow: a\nchannels:\n  b: {reducer: merge, ttl: 1s}\nsteps: [{delay: 1}]",
        3,
        "'ttl' goes with append, feedback, votes",
    ),
    (
        "workflow: a\nchannels:\n  b: {max: 1}\nsteps: [{delay: 1}]",
        3,
        "channel 'b' needs a 'reducer'",
    ),
    (
        "workflow: a\nsettings:\n  timeot: 1s\nsteps: [{delay: 1}]",
        3,
        "unknown word 'timeot' in settings — did you mean 'timeout'?",
    ),
    ("workflow: a\ntags: [1]\nsteps: [{delay: 1}]", 2, "a tag must be a text"),
    ("workflow: a\noutputs:\n  t: '{b}'\nsteps: [{set: {bb: 1}}]", 3, "did you mean 'bb'?"),
    ("workflow: a\nworkflow: b\nsteps: [{delay: 1}]", 2, "'workflow' stands here twice"),
    ("workflow: a\nname: 'open\nsteps: []", 2, "this is not YAML"),
    ("workflow: a\n\tb: 1", 2, "this is not YAML"),
    ("workflow: a\nname: \x07", 2, "this is not YAML"),
    ("workflow: a\n---\nworkflow: b", 2, "a file holds one workflow"),
    (
        "workflow: a\nname: !!python/name:os.system ''",
        2,
        "tags (words that begin with '!') are not allowed",
    ),
    ("workflow: a\nname: !secret x", 2, "tags (words that begin with '!') are not allowed"),
    ("workflow: a\nname: *nobody", 2, "'*nobody' stands for nothing"),
    ("workflow: a\nsteps: &s [*s]", 2, "'*s' stands for nothing"),
    ("workflow: a\n? [b]\n: c", 2, "a key must be a word"),
]


@pytest.mark.parametrize(("text", "line", "message"), FILES, ids=[row[2] for row in FILES])
def test_a_mistake_in_the_file_is_named(text: str, line: int, message: str) -> None:
    error = refusal(text)
    assert message in error.message
    assert error.line == line


def test_a_file_has_a_size() -> None:
    assert "larger than" in refusal("#" * (MAX_BYTES + 1)).message


def test_nesting_has_a_depth() -> None:
    assert f"more than {MAX_DEPTH} deep" in refusal("a: " + "[" * 500_000).message


def test_aliases_are_counted() -> None:
    text = "a: &a 1\nb: [" + ", ".join(["*a"] * (MAX_ALIASES + 1)) + "]"
    assert f"more than {MAX_ALIASES} aliases" in refusal(text).message


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    assert "more than 100000 values" in refusal("\n".join(lines)).message


def test_an_expression_that_grows_too_long_is_refused_where_it_stands() -> None:
    long = "{customer} " * 300
    error = refusal(HEAD + f'- set: {{a: "{long}"}}\n')
    assert (error.line, "at most 4096 characters" in error.message) == (5, True)
