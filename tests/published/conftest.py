"""The published schemas and fixtures, and a host under trial that offers them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api
from tests.support.api.published import Published
from tests.support.servers import STRICT, component_missing, openwop_folder, trial_server

#: without the data nothing here can run: tests/conftest.py says so in one line
collect_ignore_glob = [] if STRICT or openwop_folder() else ["test_*.py"]


@pytest.fixture(scope="session")
def openwop() -> Path:
    folder = openwop_folder()
    if folder is None:
        component_missing("the published OpenWOP data is not here; set MOOT_OPENWOP_DIR")
    return folder


@pytest.fixture(scope="session")
def published(openwop: Path) -> Published:
    return Published(openwop)


@pytest.fixture(scope="session")
def api(
    openwop: Path, published: Published, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """The administrator of a host that offers the published fixtures."""
    with (
        trial_server(tmp_path_factory.mktemp("published"), openwop) as process,
        Api(process.url, process.key, AnswerChecks(published)) as caller,
    ):
        yield caller


@pytest.fixture(scope="session")
def live(api: Api) -> Api:
    """An ordinary key of the same tenant: neither administrator nor test."""
    return api.with_key(api.new_key("live"))


@pytest.fixture(scope="session")
def foreign(api: Api) -> Api:
    """A key with every right, of another tenant."""
    return api.with_key(api.new_key("foreign", tenant="elsewhere", admin=True))
