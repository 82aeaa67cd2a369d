"""The documentation is complete and its samples work."""

import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

import moot
from moot.agents.tools import functions
from moot.cli import moot as command_line
from moot.config.models import ModelEntry
from moot.config.project import parse_project
from moot.config.settings import Settings
from moot.config.tools import HttpEntry, McpEntry
from moot.core.errors import MootError
from moot.core.schedules.calendar import ALIASES
from moot.core.schedules.model import ScheduleDraft
from moot.core.schedules.parse import CHOICES, parse_schedule
from moot.core.schedules.words import timing_from_words
from moot.core.workflows.flow import compile_flow, definition_digest
from moot.core.workflows.schema import TriggerDef
from moot.core.workflows.yaml import compile_yaml
from moot.core.workflows.yaml.steps import WORDS
from moot.engine.nodes import registry
from moot.triggers.schedules.declarations import schedule_body_from_trigger
from tests.support.servers import ROOT, ServerProcess, server_environment

DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]


def rows(page: Path) -> list[list[str]]:
    """The cells of every table row."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


def everything() -> None:
    for module in pkgutil.walk_packages(moot.__path__, "moot."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def family(parent: type[MootError]) -> Iterator[type[MootError]]:
    yield parent
    for child in parent.__subclasses__():
        yield from family(child)


def test_every_error_code_is_on_its_page_and_none_that_is_not_there() -> None:
    everything()
    ours = {c for c in family(MootError) if c.__module__.startswith("moot.")}
    known = {(str(c.status), c.code) for c in ours}
    listed = {(row[0], row[1].strip("`")) for row in rows(DOCS / "errors.md") if row[0].isdigit()
              and len(row) == 3}  # fmt: skip
    assert listed == known


def test_every_setting_is_on_its_page_with_its_default() -> None:
    listed = {row[0].strip("`"): row[2].strip("`") for row in rows(DOCS / "settings.md")
              if row[0].startswith("`MOOT_") and len(row) == 4}  # fmt: skip
    for field in msgspec.structs.fields(Settings):
        default = {None: "none", False: "false", True: "true"}.get(
            field.default, str(field.default)
        )
        assert listed.get(f"MOOT_{field.name.upper()}") == default, field.name
    client = {"MOOT_URL", "MOOT_KEY", "MOOT_DEBUG", "MOOT_CONFIG"}
    assert set(listed) - client == {f"MOOT_{name.upper()}" for name in Settings.__struct_fields__}


def test_the_project_files_of_the_pages_are_read() -> None:
    pages = ("models.md", "settings.md", "tools.md")
    found = [parse_project(text, Path("moot.toml"), Settings) for page in pages
             for text in blocks(DOCS / page, "toml")]  # fmt: skip
    assert sorted(name for one in found for name in one.models) == ["rude", "work"]
    assert {"port": 7700, "database": "office.db", "max_depth": 8} in [o.settings for o in found]


def test_every_word_of_a_model_is_on_the_page_of_models() -> None:
    cells = {word.strip("` ") for row in rows(DOCS / "models.md") for word in row[0].split(",")}
    assert set(ModelEntry.__struct_fields__) <= cells


def test_every_word_of_a_tool_is_on_the_page_of_tools() -> None:
    cells = {word.strip("` ") for row in rows(DOCS / "tools.md") for word in row[0].split(",")}
    assert {*HttpEntry.__struct_fields__, *McpEntry.__struct_fields__} <= cells


def test_the_functions_of_the_page_are_tools(tmp_path: Path) -> None:
    [text] = blocks(DOCS / "tools.md", "python")
    file = tmp_path / "tools.py"
    file.write_text(text)
    found = {name: tool for name, (tool, _) in functions.tools_from_path(file).items()}
    assert found["set_price"].dangerous and found["price_history"].idempotent


def commands(command: click.Command, path: str = "moot") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by what is typed."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None, f"{path} {name}"
        yield from commands(child, f"{path} {name}")


def test_every_command_is_on_the_page_of_the_command_line() -> None:
    page = (DOCS / "cli.md").read_text()
    assert [path for path, _ in commands(command_line) if f"`{path}" not in page] == []


def test_the_commands_without_json_are_those_the_readme_names() -> None:
    plain = {
        path.removeprefix("moot ")
        for path, command in commands(command_line)
        if not any("--json" in option.opts for option in command.params)
    }
    text = " ".join((ROOT / "README.md").read_text().split())
    named = text.partition("Every command has `--json`, except")[2].partition(";")[0]
    assert plain == set(re.findall(r"`(\w+)`", named))


def test_every_node_type_and_step_is_on_the_page_of_workflows() -> None:
    cells = {row[0].strip("`") for row in rows(DOCS / "workflows.md")}
    assert set(registry.built_in_types()) <= cells
    steps = {cell.split(":")[0] for cell in cells}
    assert set(WORDS) <= steps


def test_the_nodes_and_workflows_of_the_page_really_compile(tmp_path: Path) -> None:
    page = DOCS / "workflows.md"
    [nodes] = blocks(page, "python")
    (tmp_path / "nodes.py").write_text(nodes)
    types = {**registry.built_in_types(), **registry.types_from_file(tmp_path / "nodes.py")}
    found = [msgspec.json.encode(compile_yaml(text, "page")) for text in blocks(page, "yaml")]
    found += [text.encode() for text in blocks(page, "json")]
    from moot.core.workflows.definition import parse_definition

    names = [
        compile_flow(parse_definition(body), types, definition_digest(body)).definition.id
        for body in found
    ]
    waiting = ["release", "trip", "order-paid", "council"]
    assert sorted(names) == sorted(["order", "careful", *waiting, "shop", "greet", "report"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_place_of_one_machine(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"/(home|root|Users|work|tmp)/", text)
    assert "pypi.org" not in text


#: workflow -> the node that waits, and what it is answered with, one after another
ANSWERS: dict[str, tuple[str, list[Any]]] = {
    "release": ("ok", [{"action": "accept", "voter": name} for name in ("user:ann", "user:bob")]),
    "trip": ("ask", [{"answers": {"where": "Oslo", "days": 3}}]),
    "order-paid": ("paid", [{"status": "paid", "amount": 20}]),
    "council": (
        "talk",
        [
            {"content": "What do you say?"},
            {"role": "agent", "speakerId": "host:cfo", "content": "June."},
            {"operation": "close", "outcome": "June"},
        ],
    ),
}


def test_the_workflows_of_the_page_really_run(server: Callable[..., Any], tmp_path: Path) -> None:
    page = DOCS / "workflows.md"
    (tmp_path / "nodes.py").write_text(blocks(page, "python")[0])
    (tmp_path / "flows").mkdir()
    for number, text in enumerate(blocks(page, "yaml")):
        (tmp_path / "flows" / f"{number}.yaml").write_text(text)
    (tmp_path / "flows" / "greet.json").write_text(blocks(page, "json")[0])
    shutil.copy(ROOT / "examples" / "flows" / "hello.yaml", tmp_path / "flows")
    host = server("--nodes", "nodes.py", "--workflows", "flows", folder=tmp_path)
    outputs = {}
    for name in ("order", "careful", "shop", "greet", *ANSWERS):
        inputs = {"customer": "Ada", "amount": 250} if name == "order" else {}
        body = {"workflowId": name, "inputs": inputs}
        run_id = host.request("POST", "/v1/runs", body)[1]["runId"]
        node, answers = ANSWERS.get(name, ("", []))
        for value in answers:
            path = f"/v1/runs/{run_id}/interrupts/{node}"
            status, said, _ = host.request("POST", path, {"resumeValue": value})
            assert status == 200, said
        host.request("GET", f"/v1/runs/{run_id}/events")
        found = host.request("GET", f"/v1/runs/{run_id}")[1]
        assert found["status"] == "completed", found
        outputs[name] = found["outputs"]
    assert outputs["order"]["log"] == ["a large order of Ada"]
    assert outputs["careful"] == {"said": "Hello, Ada!"}
    assert outputs["shop"] == {"vat": 19.0, "charged": 100, "said": "THANK YOU!!"}
    assert outputs["greet"] == {"greeting": "Hello, world"}
    assert outputs["release"] == {"released": True}
    assert outputs["trip"] == {"where": "Oslo", "days": 3}
    assert outputs["order-paid"] == {"amount": 20}
    assert outputs["council"] == {"outcome": "June"}


def test_the_node_of_the_page_of_memory_is_reminded(
    server: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "nodes.py").write_text(blocks(DOCS / "memory.md", "python")[0])
    flow = "workflow: meet\nsteps: [{id: greet, node: acme.greet, inputs: {name: Ada}}]\n"
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "meet.yaml").write_text(flow)
    host = server("--nodes", "nodes.py", "--workflows", "flows", folder=tmp_path)
    met = []
    for _ in range(2):
        body = {"workflowId": "meet", "scopeId": "hall"}
        run_id = host.request("POST", "/v1/runs", body)[1]["runId"]
        host.request("GET", f"/v1/runs/{run_id}/events")
        found = host.request("GET", f"/v1/runs/{run_id}")[1]
        met.append(found["nodeStates"]["greet"]["outputs"]["met before"])
    assert met == [0, 1]


# -- pages for developers --------------------------------------------------------------------------


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=server_environment(**environment), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_program_of_the_page_of_the_client_runs_from_top_to_bottom(
    server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    flows = str(ROOT / "examples" / "flows")
    host = server("--workflows", flows, MOOT_DEMO_WPS="0")
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks(DOCS / "sdk.md", "python")))
    said = run([sys.executable, "page.py"], tmp_path, MOOT_URL=host.url, MOOT_KEY=host.key)
    assert "checked" in said and "A pilot in June" in said
    assert "run_not_found" in said


def test_the_tests_of_the_page_of_testing_pass_in_a_new_project(tmp_path: Path) -> None:
    run([sys.executable, "-m", "moot.cli", "init", "acme"], tmp_path)
    folder = tmp_path / "acme"
    for number, text in enumerate(blocks(DOCS / "testing.md", "python")):
        (folder / "tests" / f"test_page_{number}.py").write_text(text)
    command = [sys.executable, "-m", "moot.cli", "test", "-q", "-k", "page"]
    assert "4 passed" in run(command, folder)


# -- the page on schedules -------------------------------------------------------------------------


PAGE = DOCS / "schedules.md"
TABLE = rows(PAGE)
COMES_TO = re.compile(r"`\S+( \S+){4}`|\d+ s")
WORD_ROWS = [row for row in TABLE if len(row) == 2 and COMES_TO.fullmatch(row[1])]


@pytest.mark.parametrize("row", WORD_ROWS, ids=lambda row: row[0])
def test_words_come_to_what_the_page_says(row: list[str]) -> None:
    timing = timing_from_words(row[0].strip("`"), "UTC")
    said = f"`{timing.cron}`" if timing.cron else f"{(timing.every or 0) // 1000} s"
    assert said == row[1]


def test_every_field_is_on_the_page_with_its_default() -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(ScheduleDraft)}
    listed = {row[0].strip("`"): row[1].strip("`") for row in TABLE if len(row) == 3}
    listed.pop("field")
    assert listed.keys() == fields.keys()
    for name, default in listed.items():
        if default not in ("", "none"):
            assert str(fields[name].default) in (default, default.capitalize()), name


def test_every_policy_and_short_name_is_on_the_page() -> None:
    named = {row[0].strip("`") for row in TABLE}
    assert {*CHOICES["overlap"], *CHOICES["catchUp"]} <= named
    assert all(f"`{alias}`" in PAGE.read_text() for alias in ALIASES)


def test_the_schedule_of_the_page_is_taken() -> None:
    body, trigger = blocks(PAGE, "json")
    assert parse_schedule(body.encode(), "sch_1", 0).words == "weekday 08:30 Europe/Berlin"
    declared = msgspec.json.decode(trigger, type=TriggerDef)
    parse_schedule(schedule_body_from_trigger("weekly-pipeline", declared), "sch_trigger", 0)
