"""Types of events that can be asked for: those of this host, and every one of the protocol."""

import json
from pathlib import Path

import pytest

from moot.core.catalogue import CATALOGUE, FOREIGN_TYPES, REQUESTABLE_TYPES, check_event_types
from moot.core.errors import BadRequest
from real_server import component_missing, openwop_folder


def published() -> set[str]:
    folder = openwop_folder()
    if folder is None:
        component_missing("the published schemas")
    schema = json.loads((Path(folder) / "schemas/run-event.schema.json").read_text("utf-8"))
    return set(schema["$defs"]["RunEventType"]["enum"])


def test_every_type_of_the_protocol_can_be_asked_for() -> None:
    check_event_types(sorted(published()))
    assert published() == FOREIGN_TYPES | {
        name for name in REQUESTABLE_TYPES if name in published()
    }
    assert not FOREIGN_TYPES & {row.name for row in CATALOGUE}


def test_a_slip_is_refused_with_what_was_meant() -> None:
    check_event_types(["*"])
    with pytest.raises(BadRequest, match=r"did you mean 'run\.completed'"):
        check_event_types(["run.failed", "run.complete"])
    with pytest.raises(BadRequest, match="stands for all"):
        check_event_types(["weather"])
