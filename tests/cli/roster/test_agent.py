"""moot agent, and what asking one agent tells."""

import json

import pytest

from moot.cli.roster.set import apply_agent_changes
from moot.cli.shared.errors import CommandError
from tests.support.cli.commands import Cli
from tests.support.cli.runs import ask as call


def test_an_agent_is_changed_in_one_command_and_keeps_the_rest(moot: Cli) -> None:
    body = {"name": "seta", "role": "sceptic", "prompt": "Doubt.", "confidence": 0.8}
    call(moot, "POST", "/v1/host/moot/agents", body)
    done = moot("agent", "set", "seta", "tool_rounds=3", "temperature=0.5", "role=")
    assert done.code == 0, done.err
    found = call(moot, "GET", "/v1/host/moot/agents/seta")["definition"]
    assert (found["toolRounds"], found["temperature"], found["role"]) == (3, 0.5, "")
    assert (found["prompt"], found["confidence"]) == ("Doubt.", 0.8)
    again = json.loads(moot("agent", "set", "seta", "toolRounds=3", "--json").out)
    assert again["version"] == call(moot, "GET", "/v1/host/moot/agents/seta")["version"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("model=nowhere", "nowhere"), ("modle=demo", "did you mean 'model'"),
        ("model", "KEY=VALUE"), ("name=other", "cannot be changed"),
        ("toolRounds=many", "is a number"),
    ],
)  # fmt: skip
def test_a_change_that_is_none_is_refused_with_the_way_out(
    moot: Cli, change: str, said: str
) -> None:
    call(moot, "POST", "/v1/host/moot/agents", {"name": "setb"})
    done = moot("agent", "set", "setb", change)
    assert done.code != 0 and said in done.err


def test_tools_are_a_list_and_what_is_left_empty_is_as_usual() -> None:
    known = {"name": "a", "tools": [], "model": "x", "temperature": None, "manifest": None}
    assert apply_agent_changes(known, ("tools=look, http:rates", "model=")) == {
        "name": "a", "tools": ["look", "http:rates"]
    }  # fmt: skip
    with pytest.raises(CommandError):
        apply_agent_changes(known, ("manifest=local.agents.b",))


def test_two_answers_differ_in_tokens_too(moot: Cli) -> None:
    call(moot, "POST", "/v1/host/moot/agents", {"name": "teller"})
    runs = [
        json.loads(moot("ask", "teller", text, "--json").out)["threadId"]
        for text in ("Tea?", "Is coffee better than tea, and by how much?")
    ]
    found = json.loads(moot("diff", *runs, "--json").out)
    assert found["a"]["tokens"] > 0 and found["b"]["tokens"] > 0
    assert any("tokens " in line for line in moot("diff", *runs).lines())
