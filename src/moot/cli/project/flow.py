"""``moot flow``: the workflows a server has, and files before they get there."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moot.cli.project.flow_files import FlowProblem, body_of
from moot.cli.shared import output
from moot.cli.shared.client import path_of, to_read, to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, talks

if TYPE_CHECKING:
    from moot.core.workflows.graph import Flow


@click.group()
def flow() -> None:
    """Workflows: list, show, check files, add files."""


@flow.command("list")
@talks
def list_(options: Options) -> None:
    """List the registered workflows."""
    rows = to_read(options).get("/v1/host/moot/workflows")["workflows"]
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("ID", "VERSION", "NODES", "SOURCE", "DESCRIPTION"),
        ([r["workflowId"], r["version"], r["nodes"], r["source"], r["description"]] for r in rows),
        empty="No workflows. Add one with: moot flow add FILE",
    )


@flow.command()
@click.argument("flow_id", metavar="FLOW")
@talks
def show(options: Options, flow_id: str) -> None:
    """Show a workflow's nodes and edges (--json: its whole definition)."""
    found = to_read(options).get(path_of("v1", "workflows", flow_id))
    if options.json:
        output.show_json(found)
        return
    id_, version, name = (output.line(found[part]) for part in ("id", "version", "name"))
    click.echo(f"{click.style(id_, bold=True)} {version}  {name}")
    for variable in found["variables"]:
        said = output.line(f"{variable['name']}: {variable['type']}{_default(variable)}")
        click.echo(f"  {said}")
    after: dict[str, list[str]] = {node["id"]: [] for node in found["nodes"]}
    for edge in found["edges"]:
        after[edge["sourceNodeId"]].append(edge["targetNodeId"])
    output.table(
        ("NODE", "TYPE", "THEN"),
        ([n["id"], n["typeId"], ", ".join(after[n["id"]])] for n in found["nodes"]),
    )


def _default(variable: dict[str, Any]) -> str:
    if "defaultValue" in variable:
        return f" = {output.brief(variable['defaultValue'])}"
    return " (required)" if variable.get("required") else ""


@flow.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--nodes", metavar="FILE", help="A Python file of @node functions they use.")
@talks
def check(options: Options, files: tuple[str, ...], nodes: str | None) -> Exit:
    """Check workflow files, or all in a folder. Names file, line and the nearest word.

    Needs no server; one that runs is asked only for child workflows that are not among the files.
    """
    from moot.cli.project import flow_files
    from moot.engine.nodes import registry

    types = registry.built_in()
    try:
        types.update(registry.from_entry_points())
        if nodes:
            types.update(registry.from_file(nodes))
    except ValueError as error:
        raise Trouble(str(error)) from error
    found_in = [(name, checked(name, types)) for name in flow_files.expanded(files)]
    fine = [found for _, found in found_in if not isinstance(found, Trouble)]
    children = {child for found in fine for child in found.references}
    elsewhere = children - {found.definition.id for found in fine}
    missing = flow_files.unknown(to_write(options), elsewhere) if elsewhere else set()
    for name, found in found_in:
        if isinstance(found, Trouble):
            say_problem(options, name, found)
        else:
            say_fine(options, name, found, sorted(missing & set(found.references)))
    return Exit.OK if len(fine) == len(found_in) else Exit.FAILED


def checked(name: str, types: Any) -> "Flow | Trouble":
    from moot.cli.project import flow_files as flows

    try:
        return flows.check(Path(name), types)
    except Trouble as problem:
        return problem


def say_problem(options: Options, name: str, problem: Trouble) -> None:
    if options.json:
        line, message = getattr(problem, "line", None), getattr(problem, "message", str(problem))
        output.json_line({"file": name, "line": line, "ok": False, "message": message})
    else:
        output.complain(f"error: {problem}")


def say_fine(options: Options, file: str, found: "Flow", missing: list[str]) -> None:
    flow_id, nodes = found.definition.id, len(found.nodes)
    from moot.core.workflows.warnings import remarks

    warnings = [_no_child(child, "among these files nor known to a server") for child in missing]
    warnings += [f"{remark}." for remark in remarks(found)]
    if options.json:
        said = {"file": file, "ok": True, "workflowId": flow_id, "nodes": nodes}
        output.json_line({**said, "warnings": warnings} if warnings else said)
        return
    click.echo(f"{file}: {output.line(flow_id)} is fine ({nodes} nodes)")
    for warning in warnings:
        output.complain(f"warning: {file}: {warning}")


def _no_child(child: str, where: str) -> str:
    return f"it runs the workflow '{child}', which is neither {where}."


@flow.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@talks
def add(options: Options, files: tuple[str, ...]) -> None:
    """Register workflow files with the server; the newest of an id is what new runs use."""
    from moot.cli.project.flow_files import children_of, expanded, unknown

    api = to_write(options)
    children: dict[str, str] = {}
    for name in expanded(files):
        try:
            body = body_of(Path(name))
            answer = api.ask("POST", "/v1/host/moot/workflows", body)
        except FlowProblem:
            raise
        except Trouble as trouble:
            raise Trouble(f"{name}: {trouble}", trouble.exit_code) from trouble
        if options.json:
            output.json_line(answer)
        else:
            made = output.line(f"{answer['workflowId']} {answer['version']}")
            click.echo(f"{made} registered from {name}")
            for warning in answer.get("warnings", []):
                output.complain(f"warning: {name}: {output.line(warning)}.")
        children.update(dict.fromkeys(children_of(body), name))
    for child in sorted(unknown(api, set(children))):
        said = _no_child(child, "among these files nor known to the server")
        output.complain(f"warning: {children[child]}: {said}")
