"""A server whose agents speak through a provider on this machine, both real processes' work."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api.council_hall import AGENTS, Hall
from tests.support.provider_project import KEY, project, provider, sensible
from tests.support.servers import ServerProcess, server_environment


@pytest.fixture(scope="module")
def _hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """One for the tests of a file; each says for itself what the models answer."""
    folder: Path = tmp_path_factory.mktemp("hall")
    with provider() as models:
        project(folder, models.url, AGENTS, TOML)
        server = ServerProcess(folder, [], server_environment(STAND_IN_KEY=KEY))
        yield Hall(server, models)
        server.stop()


@pytest.fixture
def hall(_hall: Hall) -> Iterator[Hall]:
    _hall.models.answering = sensible
    _hall.models.calls.clear()
    yield _hall
    _hall.leave()


TOML = """
[prices."big"]
input = 1000
output = 1000
"""
