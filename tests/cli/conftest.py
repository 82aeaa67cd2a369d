"""The command line beside a server, and alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli.commands import SERVER_ARGUMENTS, Cli, write_flows
from tests.support.cli.councils import write_agents
from tests.support.cli.programs import Room, write_programs
from tests.support.servers import ServerProcess, server_environment


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


@pytest.fixture(scope="session")
def inn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with agents, for programs that join its threads."""
    folder = tmp_path_factory.mktemp("inn")
    write_agents(folder)
    write_programs(folder)
    process = ServerProcess(folder, [], server_environment(MOOT_DEMO_WPS="0"))
    yield process
    process.stop()


@pytest.fixture
def room(inn: ServerProcess) -> Iterator[Room]:
    """A thread with two agents in it."""
    made = Room(inn, "ada", "bo")
    yield made
    made.end()
