"""The command line beside a server, and alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_helpers import SERVER_ARGUMENTS, Cli, write_flows

from real_server import ServerProcess, server_environment


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server for all tests of commands that only talk to one."""
    folder = tmp_path_factory.mktemp("cli")
    write_flows(folder)
    process = ServerProcess(folder, SERVER_ARGUMENTS, server_environment())
    yield process
    process.stop()


@pytest.fixture
def moot(host: ServerProcess) -> Cli:
    return Cli(host.folder)


@pytest.fixture
def alone(tmp_path: Path) -> Cli:
    """A folder in which nothing is."""
    return Cli(tmp_path)
