"""Where a fork comes from: total, whatever a log from elsewhere says."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.core.replay.origin import Origin, origin

SAID = {"sourceRunId": "run_a", "fromSeq": 3, "mode": "branch"}
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from([*SAID]), inner),
    max_leaves=5,
)


@given(json)
def test_anything_can_be_asked_for_its_origin(said: Any) -> None:
    assert origin(said) is None or isinstance(origin(said), Origin)


def test_what_is_said_besides_is_passed_over() -> None:
    assert origin({**SAID, "edit": {"turn": {}}}) == Origin("run_a", 3, "branch")
    assert origin({**SAID, "note": "why"}) == Origin("run_a", 3, "branch", "why")
    assert origin(None) is None
