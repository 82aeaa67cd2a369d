"""``moot flow``: list the workflows of a server; check and register files."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moot.cli.project.files import (
    FlowProblem,
    child_workflows,
    compile_file,
    expand_folders,
    read_definition,
    unknown_workflows,
)
from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading, api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import host

if TYPE_CHECKING:
    from moot.core.workflows.flow import Flow


@click.group()
def flow() -> None:
    """Workflows: list, show, check files, add files."""


@flow.command("list")
@server_options
def list_(options: CommandOptions) -> None:
    """List the registered workflows."""
    output.print_list(
        options,
        api_for_reading(options).send(host.list_workflows()).workflows,
        ("ID", "VERSION", "NODES", "SOURCE", "DESCRIPTION"),
        lambda row: [row.workflow_id, row.version, row.nodes, row.source, row.description],
        empty="No workflows. Add one with: moot flow add FILE",
    )


@flow.command()
@click.argument("flow_id", metavar="FLOW")
@server_options
def show(options: CommandOptions, flow_id: str) -> None:
    """Show a workflow's nodes and edges (--json: its whole definition)."""
    workflow = api_for_reading(options).send(host.get_workflow(flow_id))
    if options.json:
        output.print_json(workflow)
        return
    id_, version, name = (output.safe_line(workflow[part]) for part in ("id", "version", "name"))
    click.echo(f"{click.style(id_, bold=True)} {version}  {name}")
    for variable in workflow["variables"]:
        line = output.safe_line(f"{variable['name']}: {variable['type']}{_default_text(variable)}")
        click.echo(f"  {line}")
    after: dict[str, list[str]] = {node["id"]: [] for node in workflow["nodes"]}
    for edge in workflow["edges"]:
        after[edge["sourceNodeId"]].append(edge["targetNodeId"])
    output.print_table(
        ("NODE", "TYPE", "THEN"),
        ([n["id"], n["typeId"], ", ".join(after[n["id"]])] for n in workflow["nodes"]),
    )


def _default_text(variable: Mapping[str, object]) -> str:
    if "defaultValue" in variable:
        return f" = {output.shorten(variable['defaultValue'])}"
    return " (required)" if variable.get("required") else ""


@flow.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--nodes", metavar="FILE", help="A Python file of @node functions they use.")
@server_options
def check(options: CommandOptions, files: tuple[str, ...], nodes: str | None) -> ExitCode:
    """Check workflow files, or all in a folder. Names file, line and the nearest word.

    Needs no server; one that runs is asked only for child workflows that are not among the files.
    """
    from moot.engine.nodes import registry

    types = registry.built_in_types()
    try:
        types.update(registry.types_from_entry_points())
        if nodes:
            types.update(registry.types_from_file(nodes))
    except ValueError as error:
        raise CommandError(str(error)) from error
    results = [(name, check_or_error(name, types)) for name in expand_folders(files)]
    fine = [result for _, result in results if not isinstance(result, CommandError)]
    children = {child for result in fine for child in result.references}
    elsewhere = children - {result.definition.id for result in fine}
    missing = unknown_workflows(api_for_writing(options), elsewhere) if elsewhere else set()
    for name, result in results:
        if isinstance(result, CommandError):
            print_problem(options, name, result)
        else:
            print_checked(options, name, result, sorted(missing & set(result.references)))
    return ExitCode.OK if len(fine) == len(results) else ExitCode.FAILED


def check_or_error(name: str, types: Any) -> "Flow | CommandError":
    try:
        return compile_file(Path(name), types)
    except CommandError as problem:
        return problem


def print_problem(options: CommandOptions, name: str, problem: CommandError) -> None:
    if options.json:
        line, message = getattr(problem, "line", None), getattr(problem, "message", str(problem))
        output.print_json_line({"file": name, "line": line, "ok": False, "message": message})
    else:
        output.print_error(f"error: {problem}")


def print_checked(options: CommandOptions, file: str, flow: "Flow", missing: list[str]) -> None:
    flow_id, nodes = flow.definition.id, len(flow.nodes)
    from moot.core.workflows.warnings import definition_warnings

    warnings = [
        _missing_child_warning(child, "among these files nor known to a server")
        for child in missing
    ]
    warnings += [f"{remark}." for remark in definition_warnings(flow)]
    if options.json:
        result = {"file": file, "ok": True, "workflowId": flow_id, "nodes": nodes}
        output.print_json_line({**result, "warnings": warnings} if warnings else result)
        return
    click.echo(f"{file}: {output.safe_line(flow_id)} is fine ({nodes} nodes)")
    for warning in warnings:
        output.print_error(f"warning: {file}: {warning}")


def _missing_child_warning(child: str, where: str) -> str:
    return f"it runs the workflow '{child}', which is neither {where}."


@flow.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@server_options
def add(options: CommandOptions, files: tuple[str, ...]) -> None:
    """Register workflow files with the server; the newest of an id is what new runs use."""
    api = api_for_writing(options)
    children: dict[str, str] = {}
    for name in expand_folders(files):
        try:
            body = read_definition(Path(name))
            answer = api.send(host.register_workflow(body))
        except FlowProblem:
            raise
        except CommandError as error:
            raise CommandError(f"{name}: {error}", error.exit_code) from error
        if options.json:
            output.print_json_line(answer)
        else:
            registered = output.safe_line(f"{answer.workflow_id} {answer.version}")
            click.echo(f"{registered} registered from {name}")
            for warning in answer.warnings:
                output.print_error(f"warning: {name}: {output.safe_line(warning)}.")
        children.update(dict.fromkeys(child_workflows(body), name))
    for child in sorted(unknown_workflows(api, set(children))):
        warning_text = _missing_child_warning(child, "among these files nor known to the server")
        output.print_error(f"warning: {children[child]}: {warning_text}")
