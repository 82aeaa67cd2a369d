"""Types of events that can be asked for: those of this host, and every one of the protocol."""

import pytest

from moot.core.catalogue import CATALOGUE, FOREIGN_TYPES, REQUESTABLE_TYPES, check_event_types
from moot.core.errors import BadRequest


def test_every_type_is_in_one_list() -> None:
    names = [row.name for row in CATALOGUE]
    assert len(names) == len(set(names))
    assert not FOREIGN_TYPES & set(names)
    check_event_types(sorted(REQUESTABLE_TYPES))


def test_a_slip_is_refused_with_what_was_meant() -> None:
    check_event_types(["*"])
    with pytest.raises(BadRequest, match=r"did you mean 'run\.completed'"):
        check_event_types(["run.failed", "run.complete"])
    with pytest.raises(BadRequest, match="stands for all"):
        check_event_types(["weather"])
