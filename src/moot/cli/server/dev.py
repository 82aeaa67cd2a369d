"""``moot dev``: run the server in a child process, restarted when a file changes."""

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from moot.cli.server import child_process
from moot.cli.server.serve import refuse_taken_port, serve_options, settings_from
from moot.cli.shared.errors import ExitCode

if TYPE_CHECKING:
    import subprocess

    from moot.config.settings import Settings

POLL_SECONDS = 0.5
SUFFIXES = (".json", ".yaml", ".yml")

Stamps = dict[Path, int]


@click.command()
@serve_options
def dev(log_json: bool, **flags: Any) -> ExitCode:
    """Serve, and start again whenever moot.toml or a file of workflows, agents, nodes or tools
    changes."""
    settings = settings_from(**flags)
    refuse_taken_port(settings)
    return DevServer(settings, ["--log-json"] if log_json else []).run()


class DevServer:
    """Runs one server at a time. Ctrl-C, SIGTERM and a closed terminal end both processes."""

    def __init__(self, settings: "Settings", extra: list[str]) -> None:
        self._settings, self._extra = settings, extra
        self._port = settings.port or _free_port(settings.host)
        self._stop = threading.Event()

    def run(self) -> ExitCode:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        last_stamps = file_stamps(self._settings)
        server: subprocess.Popen[str] | None = self._start()
        while not self._stop.wait(POLL_SECONDS):
            current_stamps = file_stamps(self._settings)
            if current_stamps == last_stamps:
                if server is not None and server.poll() is not None:
                    click.echo("The server has stopped; change a file to start it again.", err=True)
                    child_process.stop_server(server)
                    server = None
                continue
            click.echo(
                f"{', '.join(describe_changes(last_stamps, current_stamps))}: starting again",
                err=True,
            )
            last_stamps = current_stamps
            child_process.stop_server(server)
            server = self._start()
        child_process.stop_server(server)
        return ExitCode.OK

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()

    def _start(self) -> "subprocess.Popen[str]":
        return child_process.start_server([*self._flags(), *self._extra])

    def _flags(self) -> list[str]:
        from moot.config.settings import parse_peers

        settings = self._settings
        flags = [settings.database, "--host", settings.host, "--port", str(self._port)]
        for name in ("workflows", "agents", "nodes"):
            if value := getattr(settings, name):
                flags += [f"--{name}", value]
        for name, url in parse_peers(settings).items():
            flags += ["--peer", f"{name}={url}"]
        flags += ["--trust-local"] if settings.trust_local else []
        return [*flags, "--conformance"] if settings.conformance else flags


def file_stamps(settings: "Settings") -> Stamps:
    """Return when each watched file was last written."""
    from moot.config.settings import find_agents_folder

    paths = _project_files()
    if settings.workflows:
        folder = Path(settings.workflows)
        paths += [path for path in folder.rglob("*") if path.suffix in SUFFIXES]
    if (agents := find_agents_folder(settings)) is not None:
        paths += agents.glob("*.md")
    if settings.nodes:
        paths.append(Path(settings.nodes))
    if settings.tools:
        tools = Path(settings.tools)
        paths += tools.glob("*.py") if tools.is_dir() else [tools]
    return {path: stamp for path in paths if (stamp := _file_stamp(path)) is not None}


def _project_files() -> list[Path]:
    from moot.config.settings import project_file

    try:
        return [project_file()]
    except ValueError:  # the named file no longer exists
        return []


def _file_stamp(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def describe_changes(before: Stamps, after: Stamps) -> list[str]:
    words = [f"{path} changed" for path in sorted(before.keys() & after.keys())
             if before[path] != after[path]]  # fmt: skip
    words += [f"{path} is new" for path in sorted(after.keys() - before.keys())]
    return words + [f"{path} is gone" for path in sorted(before.keys() - after.keys())]


def _free_port(host: str) -> int:
    import socket

    with socket.create_server((host, 0)) as probe:
        return int(probe.getsockname()[1])
