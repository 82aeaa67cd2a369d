"""Files of a project: read, check and register workflows, and read agents."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from moot.cli.shared.client import Api, ServerUnreachable
from moot.cli.shared.errors import CommandError, ExitCode
from moot.client.operations import host

if TYPE_CHECKING:
    from moot.core.workflows.flow import Flow

SUFFIXES = (".json", ".yaml", ".yml")


class FlowProblem(CommandError):
    """A mistake in a file, with its place in the form that editors understand."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")
        self.file, self.line, self.message = file, line, message


def expand_folders(names: tuple[str, ...]) -> list[str]:
    """Return the files, with each folder replaced by the workflow files in it."""
    files: list[str] = []
    for name in names:
        if Path(name).is_dir():
            inside = sorted(file for file in Path(name).rglob("*") if file.suffix in SUFFIXES)
            if not inside:
                raise CommandError(f"there is no workflow file in {name}.", ExitCode.NOT_FOUND)
            files += map(str, inside)
        else:
            files.append(name)
    return files


def child_workflows(body: bytes) -> set[str]:
    """Return the workflows that a definition starts as child runs."""
    from moot.core.workflows.node_types import NodeKind
    from moot.engine.nodes import registry

    child_types = {
        name for name, type_ in registry.built_in_types().items() if type_.kind is NodeKind.CHILD
    }
    configs = [node.get("config", {}) for node in json.loads(body)["nodes"]
               if node["typeId"] in child_types]  # fmt: skip
    return {str(config["workflowId"]) for config in configs if "workflowId" in config}


def unknown_workflows(api: Api, names: set[str]) -> set[str]:
    """Return the workflows that the server does not know, or all if no server answers."""
    missing = set()
    for name in sorted(names):
        try:
            api.send(host.get_workflow(name))
        except ServerUnreachable:
            return names
        except CommandError:
            missing.add(name)
    return missing


def register_flow(api: Api, flow: str) -> str:
    """Return the id of a workflow; register it first if it is a file."""
    if not flow.endswith(SUFFIXES):
        return flow
    return api.send(host.register_workflow(read_definition(Path(flow)))).workflow_id


def read_definition(file: Path) -> bytes:
    """Return the definition in a file, in the form of the protocol. Raise CommandError."""
    from moot.api.workflows.folder import read_flow
    from moot.core.workflows.yaml import FlowFileError

    if file.suffix not in SUFFIXES:
        raise CommandError(
            f"{file}: a workflow file ends with {', '.join(SUFFIXES)}.", ExitCode.USAGE
        )
    try:
        return read_flow(file)
    except FlowFileError as error:
        raise FlowProblem(str(file), error.line, error.message) from error
    except FileNotFoundError:
        raise CommandError(f"there is no file {file}.", ExitCode.NOT_FOUND) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}.") from None


def compile_file(file: Path, types: Any) -> "Flow":
    """Return the compiled workflow of a file. Raise FlowProblem with the line."""
    from moot.core.errors import MootError
    from moot.core.workflows.definition import parse_definition
    from moot.core.workflows.flow import compile_flow, definition_digest

    body = read_definition(file)
    if file.suffix == ".json":
        _refuse_invalid_json(file, body)
    try:
        return compile_flow(parse_definition(body), types, definition_digest(body))
    except MootError as refusal:
        text = file.read_text(encoding="utf-8")
        line = _line_of_refusal(text, refusal)
        raise FlowProblem(str(file), line, refusal.message) from refusal


def _refuse_invalid_json(file: Path, body: bytes) -> None:
    """Raise FlowProblem with the line, because the host's own parser does not name it."""
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        raise FlowProblem(str(file), error.lineno, f"this is not JSON: {error.msg}.") from error
    except ValueError as error:
        raise FlowProblem(str(file), 1, f"this is not JSON: {error}.") from error


def _line_of_refusal(text: str, refusal: Any) -> int:
    """Return the line of the first quoted word of the refusal that is found."""
    words = [str(refusal.details.get("offendingTypeId", ""))]
    words += re.findall(r"['`]([^'`]+)['`]", refusal.message)
    lines = (line_of_word(text, word) for word in words if word)
    return next((line for line in lines if line is not None), 1)


def line_of_word(text: str, word: str) -> int | None:
    """Return the first line that has the word."""
    whole_word = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
    numbers = (n for n, line in enumerate(text.splitlines(), 1) if whole_word.search(line))
    return next(numbers, None)


def read_agent_file(file: Path) -> dict[str, object]:
    """Return an agent's file as the server takes it: Markdown with front matter, YAML or JSON."""
    from moot.agents.definitions.manifest import ManifestProblem, agent_from_markdown

    text = file.read_text(encoding="utf-8")
    if file.suffix in SUFFIXES:
        import yaml

        data = yaml.safe_load(text)  # JSON is YAML, too
        if not isinstance(data, dict):
            raise CommandError(
                f"{file}: this is no agent; write 'key: value' lines.", ExitCode.USAGE
            )
        return data if "agentId" in data else {"name": file.stem, **data}
    try:
        agent = agent_from_markdown(text, file.stem)
    except ManifestProblem as problem:
        raise CommandError(f"{file}:{problem.line}: {problem.message}", ExitCode.USAGE) from None
    return {key: value for key, value in to_builtins(agent).items() if value is not None}
