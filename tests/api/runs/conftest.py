"""Runs that several tests read."""

import pytest

from tests.support.api.caller import Api, speaking


@pytest.fixture(scope="module")
def ended(api: Api) -> str:
    """A finished run with every tier of events."""
    run_id = api.create("conformance-stream-text", **speaking(3))
    api.until(run_id, "completed")
    return run_id
