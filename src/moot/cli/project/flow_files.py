"""Workflow files: read, checked without a server, registered with one."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moot.cli.shared.client import Api, Unreachable, path_of
from moot.cli.shared.errors import Exit, Trouble

if TYPE_CHECKING:
    from moot.core.workflows.graph import Flow

SUFFIXES = (".json", ".yaml", ".yml")


class FlowProblem(Trouble):
    """A mistake in a file, with its place as editors understand it."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")
        self.file, self.line, self.message = file, line, message


def expanded(names: tuple[str, ...]) -> list[str]:
    """Files as they are; a folder stands for every workflow file in it."""
    found: list[str] = []
    for name in names:
        if Path(name).is_dir():
            inside = sorted(file for file in Path(name).rglob("*") if file.suffix in SUFFIXES)
            if not inside:
                raise Trouble(f"there is no workflow file in {name}.", Exit.NOT_FOUND)
            found += map(str, inside)
        else:
            found.append(name)
    return found


def children_of(body: bytes) -> set[str]:
    """The workflows that a definition the server has taken starts as child runs."""
    from moot.core.workflows.node_types import Kind
    from moot.engine.nodes import registry

    starts = {name for name, type_ in registry.built_in().items() if type_.kind is Kind.CHILD}
    configs = [node.get("config", {}) for node in json.loads(body)["nodes"]
               if node["typeId"] in starts]  # fmt: skip
    return {str(config["workflowId"]) for config in configs if "workflowId" in config}


def unknown(api: Api, names: set[str]) -> set[str]:
    """Those workflows no server that can be asked knows."""
    missing = set()
    for name in sorted(names):
        try:
            api.get(path_of("v1", "workflows", name))
        except Unreachable:
            return names
        except Trouble:
            missing.add(name)
    return missing


def registered(api: Api, flow: str) -> str:
    """The id of a workflow; a file is registered first."""
    if not flow.endswith(SUFFIXES):
        return flow
    answer: dict[str, Any] = api.ask("POST", "/v1/host/moot/workflows", body_of(Path(flow)))
    return str(answer["workflowId"])


def body_of(file: Path) -> bytes:
    """The definition in a file, as the protocol has it."""
    from moot.api.workflows.folder import read_flow
    from moot.core.workflows.yaml import FlowFileError

    if file.suffix not in SUFFIXES:
        raise Trouble(f"{file}: a workflow file ends with {', '.join(SUFFIXES)}.", Exit.USAGE)
    try:
        return read_flow(file)
    except FlowFileError as error:
        raise FlowProblem(str(file), error.line, error.message) from error
    except FileNotFoundError:
        raise Trouble(f"there is no file {file}.", Exit.NOT_FOUND) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Trouble(f"{file} cannot be read: {error}.") from None


def check(file: Path, types: Any) -> "Flow":
    """The compiled workflow of a file, or a problem that names its line."""
    from moot.core.errors import MootError
    from moot.core.workflows.definition import parse
    from moot.core.workflows.graph import compile_flow, digest

    body = body_of(file)
    if file.suffix == ".json":
        _refuse_no_json(file, body)
    try:
        return compile_flow(parse(body), types, digest(body))
    except MootError as refusal:
        text = file.read_text(encoding="utf-8")
        line = _line_of(text, refusal)
        raise FlowProblem(str(file), line, refusal.message) from refusal


def _refuse_no_json(file: Path, body: bytes) -> None:
    """The host's own parser is quick, but does not say where."""
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        raise FlowProblem(str(file), error.lineno, f"this is not JSON: {error.msg}.") from error
    except ValueError as error:
        raise FlowProblem(str(file), 1, f"this is not JSON: {error}.") from error


def _line_of(text: str, refusal: Any) -> int:
    """Where the thing stands that the refusal is about: the first quoted word that is found."""
    words = [str(refusal.details.get("offendingTypeId", ""))]
    words += re.findall(r"['`]([^'`]+)['`]", refusal.message)
    for word in filter(None, words):
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", line):
                return number
    return 1
