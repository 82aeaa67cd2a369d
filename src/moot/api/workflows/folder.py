"""Workflows from a folder: JSON as the protocol has it, YAML in the friendly form."""

from pathlib import Path

from moot.api.access.auth import DEFAULT_TENANT
from moot.api.http.request import encode
from moot.api.services import Services
from moot.core.errors import MootError

SUFFIXES = (".json", ".yaml", ".yml")


def read_flow(file: Path) -> bytes:
    """The definition in a file, as the protocol has it. Raises FlowFileError (a ValueError)."""
    if file.suffix == ".json":
        return file.read_bytes()
    from moot.core.workflows.yaml import compile_yaml

    return encode(compile_yaml(file.read_text(encoding="utf-8"), file.name))


async def register_folder(services: Services, folder: Path) -> list[str]:
    """Registers what is well formed; says of every other file what is wrong with it."""
    problems = []
    for file in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
        try:
            await services.triggers.declared.register(
                DEFAULT_TENANT, read_flow(file), "moot", file.name
            )
        except MootError as refusal:
            problems.append(f"{file.name}: {refusal.message}")
        except (OSError, ValueError) as error:
            said = str(error)
            problems.append(said if said.startswith(file.name) else f"{file.name}: {said}")
    return problems
