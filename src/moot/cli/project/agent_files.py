"""Read the file of an agent."""

from pathlib import Path
from typing import Any

from moot.cli.shared.errors import CommandError, ExitCode


def read_agent_file(file: Path) -> dict[str, Any]:
    """Return an agent's file as the server takes it: Markdown with front matter, YAML or JSON."""
    import msgspec

    from moot.agents.definitions.manifest import ManifestProblem, agent_from_markdown

    text = file.read_text(encoding="utf-8")
    if file.suffix in (".yaml", ".yml", ".json"):
        import yaml

        data = yaml.safe_load(text)  # JSON is YAML, too
        if not isinstance(data, dict):
            raise CommandError(
                f"{file}: this is no agent; write 'key: value' lines.", ExitCode.USAGE
            )
        return data if "agentId" in data else {"name": file.stem, **data}
    try:
        manifest: dict[str, Any] = msgspec.to_builtins(agent_from_markdown(text, file.stem))
    except ManifestProblem as problem:
        raise CommandError(f"{file}:{problem.line}: {problem.message}", ExitCode.USAGE) from None
    return {key: value for key, value in manifest.items() if value is not None}
