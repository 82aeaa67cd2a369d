"""Register the workflows of a folder, as JSON or YAML."""

from pathlib import Path

from moot.api.access.auth import DEFAULT_TENANT
from moot.api.http.request import encode
from moot.api.services import Services
from moot.core.errors import MootError

SUFFIXES = (".json", ".yaml", ".yml")


def read_flow(file: Path) -> bytes:
    """Return the definition in a file as JSON. Raise FlowFileError, a ValueError."""
    if file.suffix == ".json":
        return file.read_bytes()
    from moot.core.workflows.yaml import compile_yaml

    return encode(compile_yaml(file.read_text(encoding="utf-8"), file.name))


async def register_folder(services: Services, folder: Path) -> list[str]:
    """Register all valid files. Return one sentence for each of the others."""
    problems = []
    for file in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
        try:
            await services.triggers.declared.register(
                DEFAULT_TENANT, read_flow(file), "moot", file.name
            )
        except MootError as refusal:
            problems.append(f"{file.name}: {refusal.message}")
        except (OSError, ValueError) as error:
            problem = str(error)
            problems.append(problem if problem.startswith(file.name) else f"{file.name}: {problem}")
    return problems
