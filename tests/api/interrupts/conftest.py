"""Keys that several tests use."""

import pytest

from tests.support.api.caller import Api


@pytest.fixture(scope="module")
def person(api: Api) -> Api:
    """An ordinary key of somebody with a name."""
    return api.with_key(api.new_key("ann", **{"as": ["user:ann"]}))
