"""Keys to the host under trial, and more servers, as fixtures."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api
from tests.support.api.published import Published
from tests.support.servers import WORKFLOWS, ServerProcess, openwop_folder, server_environment


@pytest.fixture(scope="session")
def answers() -> AnswerChecks:
    folder = openwop_folder()
    return AnswerChecks(Published(folder) if folder else None)


@pytest.fixture(scope="session")
def api(conformance_server: Any, answers: AnswerChecks) -> Iterator[Api]:
    """The administrator's key, which is a test key too."""
    with Api(conformance_server.url, conformance_server.key, answers) as found:
        yield found


@pytest.fixture(scope="session")
def live(api: Api) -> Api:
    """An ordinary key of the same tenant: neither administrator nor test."""
    return api.with_key(api.new_key("live"))


@pytest.fixture(scope="session")
def foreign(api: Api) -> Api:
    """A key with every right, of another tenant."""
    return api.with_key(api.new_key("foreign", tenant="elsewhere", admin=True))


@pytest.fixture
def host(server: Callable[..., Any], answers: AnswerChecks) -> Iterator[Callable[..., Api]]:
    """``host(*arguments, **environment)``: the administrator of one more server, as ``.server``."""
    opened: list[Api] = []

    def start(*arguments: str, **environment: Any) -> Api:
        process = server(*arguments, MOOT_OPENWOP_DIR=str(WORKFLOWS), **environment)
        found = Api(process.url, process.key, answers)
        found.server = process
        opened.append(found)
        return found

    yield start
    for found in opened:
        found.close()


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory, answers: AnswerChecks) -> Iterator[Api]:
    """The administrator of another server, which knows nothing of the first."""
    process = ServerProcess(tmp_path_factory.mktemp("elsewhere"), [], server_environment())
    with Api(process.url, process.key, answers) as found:
        found.server = process  # type: ignore[attr-defined]
        yield found
    process.stop()
