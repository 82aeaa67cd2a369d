"""One server for the tests that only talk to it, and clients of both kinds."""

from collections.abc import AsyncIterator, Iterator

import pytest

from moot import AsyncClient, Client
from tests.support.servers import ROOT, ServerProcess, server_environment


@pytest.fixture(scope="session")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    place = tmp_path_factory.mktemp("office")
    flows = str(ROOT / "examples" / "flows")
    process = ServerProcess(place, ["--workflows", flows], server_environment(MOOT_DEMO_WPS="0"))
    yield process
    process.stop()


@pytest.fixture
def client(office: ServerProcess) -> Iterator[Client]:
    with Client(office.url, office.key) as made:
        yield made


@pytest.fixture
async def async_client(office: ServerProcess) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(office.url, office.key) as made:
        yield made
