"""moot tools, and a person's word on their use: the example project on a real server."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.commands import Cli
from tests.support.cli.terminal import Person
from tests.support.servers import ROOT, ServerProcess, server_environment

FLOWS = {
    "work": "steps: [{id: work, node: moot.agent, config: {agent: ada, prompt: Lamps?}}]",
    "council": "steps: [{id: talk, node: core.conversationGate, config: {prompt: Lamps?,"
    " participants: [{agentId: host:ada}, {agentId: host:bo}],"
    " participation: {mode: round-robin, rounds: 1}}}]",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("tools") / "project"
    shutil.copytree(ROOT / "examples" / "tools", folder)
    (folder / "agents" / "bo.md").write_text("---\nmodel: quiet\n---\nYou say nothing.\n")
    with (folder / "moot.toml").open("a") as file:
        file.write('\n[models.quiet]\nprovider = "demo"\nscript = ["PASS"]\n')
    (folder / "flows").mkdir()
    for name, text in FLOWS.items():
        (folder / "flows" / f"{name}.yaml").write_text(f"workflow: {name}\n{text}\n")
    process = ServerProcess(folder, ["--workflows", "flows"], server_environment(MOOT_DEMO_WPS="0"))
    yield process
    process.stop()


@pytest.fixture
def moot(project: ServerProcess) -> Cli:
    return Cli(project.folder)


def asked(moot: Cli, flow: str) -> tuple[str, dict[str, Any]]:
    """A run that has come to its dangerous tool, and the item of the inbox."""
    run_id = moot("run", flow, "-d").lines()[0]
    return run_id, until(
        lambda: next(
            (
                item
                for item in json.loads(moot("inbox", "--json").out)
                if item["runId"] == run_id and "set_price" in item["question"]
            ),
            None,
        )
    )


def until(found: Callable[[], Any]) -> Any:
    for _ in range(200):
        if (value := found()) is not None:
            return value
    raise AssertionError("it never came to that")


def events(moot: Cli, run_id: str, type_: str) -> list[dict[str, Any]]:
    page = json.loads(moot("api", "GET", f"/v1/runs/{run_id}/events/poll?limit=500").out)
    return [event["payload"] for event in page["events"] if event["type"] == type_]


def test_every_tool_is_listed_with_who_may_use_it(moot: Cli) -> None:
    rows = [line.split("\t") for line in moot("tools", "list").lines()]
    assert [row[:3] for row in rows] == [
        ["http:weather", "no", "-"],
        ["price_history", "no", "ada"],
        ["set_price", "yes", "ada"],
    ]
    assert rows[1][3].endswith("prices.py") and rows[1][4].startswith("Past prices")
    [weather, _, _] = json.loads(moot("tools", "list", "--json").out)
    assert weather["parameters"]["required"] == ["city"] and weather["idempotent"]
    ada = json.loads(moot("api", "GET", "/v1/agents/local.agents.ada").out)
    assert ada["toolAllowlist"] == ["openwop:price_history", "openwop:set_price"]


@pytest.mark.parametrize("flow", ["work", "council"])
@pytest.mark.parametrize("word", ["approve", "reject"])
def test_a_persons_word_is_given_by_number(moot: Cli, flow: str, word: str) -> None:
    run_id, item = asked(moot, flow)
    assert item["question"] == 'Let host:ada use set_price?: {"sku":"lamp","price":11.5}'
    done = moot(word, item["number"])
    assert done.code == 0, done.err
    assert "set_price" in done.out
    backs = until(
        lambda: found if len(found := events(moot, run_id, "agent.toolReturned")) == 2 else None
    )
    assert [back["toolName"] for back in backs] == ["price_history", "set_price"]
    assert backs[0]["outcome"][:2] == [10.0, 10.8]
    assert backs[1]["status"] == ("ok" if word == "approve" else "forbidden")
    answered = moot(word, item["id"])
    assert answered.code == 5


def test_who_asks_an_agent_that_needs_a_word_is_told_so_in_a_pipe(moot: Cli) -> None:
    done = moot("ask", "ada", "Lamps?")
    assert (done.code, done.out) == (4, "")
    assert "host:ada wants to use set_price(" in done.err
    thread_id = re.search(r"moot approve (th_\w+)", done.err)
    assert thread_id is not None, done.err
    assert moot("approve", thread_id[1]).code == 0


@pytest.mark.parametrize(("answer", "status"), [("y", "ok"), ("n", "forbidden")])
def test_at_a_terminal_who_asks_can_agree_there(moot: Cli, answer: str, status: str) -> None:
    me = Person(moot.folder, "ask", "ada", "Lamps?")
    try:
        me.until(r"host:ada wants to use set_price\(.*\. Allow it\? \[y/N\]")
        me.enter(answer)
        assert me.end() == 0, me.glass.text
    finally:
        me.leave()
    run_id = json.loads(moot("run", "list", "-n", "1", "--json").out)[0]["runId"]
    assert events(moot, run_id, "agent.toolReturned")[-1]["status"] == status


def test_what_was_used_and_who_allowed_it_stands_in_the_minutes_and_on_the_screen(
    moot: Cli,
) -> None:
    run_id, item = asked(moot, "council")
    assert moot("approve", item["number"]).code == 0
    until(lambda: found if len(found := events(moot, run_id, "agent.toolReturned")) == 2 else None)
    minutes = moot("thread", "export", run_id).out
    for said in ("ada used price_history(", "ada wants to use set_price(", "user allowed it"):
        assert said in minutes.replace("\\", ""), minutes
    told = moot("run", "tail", run_id, "--no-follow").out
    assert 'host:ada used price_history({"sku": "lamp"})' in told
    assert "agent." not in told


def test_a_word_that_is_more_than_yes_or_no_is_refused(moot: Cli) -> None:
    run_id, item = asked(moot, "council")
    for more in (["--comment", "well"], ["--override", "me"]):
        refused = moot("approve", item["number"], *more)
        assert refused.code == 2 and "nothing else" in refused.err
    assert moot("answer", item["number"], "yes").code == 2
    assert moot("reject", item["id"]).code == 0
    assert until(lambda: events(moot, run_id, "moot.tool.answered") or None)[0]["allowed"] is False


def test_the_doctor_says_what_tools_lack(moot: Cli, tmp_path: Path) -> None:
    found = {row["check"]: row for row in json.loads(moot("doctor", "--json").out)["checks"]}
    assert found["tools"]["result"] == "ok", found["tools"]
    assert found["tools"]["says"] == "http:weather, price_history, set_price"
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "cy.md").write_text("---\ntools: [weahter]\n---\nHi.")
    (tmp_path / "moot.toml").write_text(
        '[server]\nagents = "agents"\n[tools.inside]\nurl = "https://localhost/"\n'
        '[tools.keyed]\nurl = "https://a.example.com/"\nkey_env = "NO_SUCH_KEY"\n'
        '[mcp.gone]\ncommand = ["no-such-program-here"]\n'
    )
    done = Cli(tmp_path)("doctor", "--json")
    says = {row["check"]: row for row in json.loads(done.out)["checks"]}["tools"]["says"]
    assert done.code == 1
    for part in (
        "http:inside cannot be called", "http:keyed has no key: set NO_SUCH_KEY",
        "mcp:gone cannot be started", "cy.md:2: there is no tool 'weahter'",
    ):  # fmt: skip
        assert part in says


def test_an_agent_with_an_unknown_tool_is_answered_422(moot: Cli) -> None:
    body = json.dumps({"name": "dee", "tools": ["price_histroy"]})
    refused = moot("api", "POST", "/v1/host/moot/agents", "-d", body)
    assert refused.code != 0
    assert "did you mean 'price_history'" in refused.out + refused.err


def test_a_broken_file_of_tools_stops_the_start_in_a_sentence(tmp_path: Path) -> None:
    alone = Cli(tmp_path)
    (tmp_path / "tools.py").write_text("from moot import tool\n\n@tool\ndef look(at): ...\n")
    done = alone("serve", "--port", "0", MOOT_TOOLS="tools.py")
    assert done.code == 1 and "Tool 'look': parameter 'at' has no type" in done.err
    done = alone("serve", "--port", "0", MOOT_TOOLS="none")
    assert done.code == 2 and "there is no file or folder none" in done.err
