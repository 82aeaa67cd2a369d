"""The pytest plugin: fixtures ``bench`` and ``cassette``, and offline tests."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from moot.testing.bench import Bench, Tape


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("moot")
    group.addoption(
        "--moot-offline", action="store_true", help="Refuse connections that leave this machine."
    )
    group.addoption(
        "--moot-record", action="store_true", help="Ask the models, and record their answers."
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--moot-offline"):
        from moot.testing import offline

        offline.refuse_network()


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> "Iterator[Bench]":
    """A bench on the project of the pytest run, if there is one; closed after the test."""
    from moot.config.settings import PROJECT_FILE
    from moot.testing.bench import Bench

    root = request.config.rootpath
    with Bench(root if (root / PROJECT_FILE).is_file() else None) as project_bench:
        yield project_bench


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> "Tape":
    """The file of recorded answers of this test, for ``bench.tape``; --moot-record writes it."""
    from moot.testing.bench import Tape

    name = re.sub(r"[^\w.-]+", "_", request.node.name)
    folder = request.path.parent / "cassettes"
    record = bool(request.config.getoption("--moot-record"))
    return Tape(folder / f"{request.path.stem}.{name}.jsonl", record)
