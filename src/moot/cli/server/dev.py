"""``moot dev``: the server in a child process, started again when a file changes."""

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from moot.cli.server import child_process
from moot.cli.server.serve import refuse_taken_port, server_options, settings_from
from moot.cli.shared.errors import Exit

if TYPE_CHECKING:
    import subprocess

    from moot.config.settings import Settings

EVERY = 0.5
SUFFIXES = (".json", ".yaml", ".yml")

Stamps = dict[Path, int]


@click.command()
@server_options
def dev(log_json: bool, **flags: Any) -> Exit:
    """Serve, and start again whenever moot.toml or a file of workflows, agents, nodes or tools
    changes."""
    settings = settings_from(flags)
    refuse_taken_port(settings)
    return Watch(settings, ["--log-json"] if log_json else []).run()


class Watch:
    """One child at a time. Ctrl-C, SIGTERM and a terminal that goes away end both."""

    def __init__(self, settings: "Settings", extra: list[str]) -> None:
        self._settings, self._extra = settings, extra
        self._port = settings.port or _free_port(settings.host)
        self._stop = threading.Event()

    def run(self) -> Exit:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._told)
        seen = stamps(self._settings)
        server: subprocess.Popen[str] | None = self._start()
        while not self._stop.wait(EVERY):
            now = stamps(self._settings)
            if now == seen:
                if server is not None and server.poll() is not None:
                    click.echo("The server has stopped; change a file to start it again.", err=True)
                    child_process.end(server)
                    server = None
                continue
            click.echo(f"{', '.join(changes(seen, now))}: starting again", err=True)
            seen = now
            child_process.end(server)
            server = self._start()
        child_process.end(server)
        return Exit.OK

    def _told(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()

    def _start(self) -> "subprocess.Popen[str]":
        return child_process.start([*self._flags(), *self._extra])

    def _flags(self) -> list[str]:
        from moot.config.settings import peers_of

        given = self._settings
        flags = [given.database, "--host", given.host, "--port", str(self._port)]
        for name in ("workflows", "agents", "nodes"):
            if value := getattr(given, name):
                flags += [f"--{name}", value]
        for name, url in peers_of(given).items():
            flags += ["--peer", f"{name}={url}"]
        flags += ["--trust-local"] if given.trust_local else []
        return [*flags, "--conformance"] if given.conformance else flags


def stamps(settings: "Settings") -> Stamps:
    """When each watched file was last written."""
    from moot.config.settings import agents_folder

    found = _project_files()
    if settings.workflows:
        folder = Path(settings.workflows)
        found += [path for path in folder.rglob("*") if path.suffix in SUFFIXES]
    if (agents := agents_folder(settings)) is not None:
        found += agents.glob("*.md")
    if settings.nodes:
        found.append(Path(settings.nodes))
    if settings.tools:
        tools = Path(settings.tools)
        found += tools.glob("*.py") if tools.is_dir() else [tools]
    return {path: stamp for path in found if (stamp := _stamp(path)) is not None}


def _project_files() -> list[Path]:
    from moot.config.settings import project_file

    try:
        return [project_file()]
    except ValueError:  # the one that was named has gone
        return []


def _stamp(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def changes(before: Stamps, after: Stamps) -> list[str]:
    """What happened, in words."""
    words = [f"{path} changed" for path in sorted(before.keys() & after.keys())
             if before[path] != after[path]]  # fmt: skip
    words += [f"{path} is new" for path in sorted(after.keys() - before.keys())]
    return words + [f"{path} is gone" for path in sorted(before.keys() - after.keys())]


def _free_port(host: str) -> int:
    import socket

    with socket.create_server((host, 0)) as probe:
        return int(probe.getsockname()[1])
