"""Where a fork comes from: total, whatever a log from elsewhere says."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.core.replay.origin import ForkOrigin, fork_origin

SAID = {"sourceRunId": "run_a", "fromSeq": 3, "mode": "branch"}
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from([*SAID]), inner),
    max_leaves=5,
)


@given(json)
def test_anything_can_be_asked_for_its_origin(said: Any) -> None:
    assert fork_origin(said) is None or isinstance(fork_origin(said), ForkOrigin)


def test_what_is_said_besides_is_passed_over() -> None:
    assert fork_origin({**SAID, "edit": {"turn": {}}}) == ForkOrigin("run_a", 3, "branch")
    assert fork_origin({**SAID, "note": "why"}) == ForkOrigin("run_a", 3, "branch", "why")
    assert fork_origin(None) is None
