"""The public surface is three modules, each a list. Whatever is not listed may change."""

import importlib
import re

import pytest

import moot
from real_server import ROOT

SURFACE = {
    "moot": [
        "ApiError", "AsyncClient", "Client", "Completed", "Failed", "NodeContext", "NodeError",
        "__version__", "node", "tool",
    ],
    "moot.client": [
        "AlreadyAnswered", "ApiError", "AsyncClient", "AsyncRun", "AsyncThread", "BadAnswer",
        "BadRequest", "Client", "ClientError", "Conflict", "ConversationClosed", "Edit", "Event",
        "Forbidden", "Gone", "Line", "NotAParticipant", "NotFound", "NotProvided", "Options",
        "ParticipantMuted", "Question", "RateLimited", "Run", "RunAlreadyActive", "RunRow",
        "RunTerminal", "Snapshot", "Spoken", "Thread", "ThreadPaused", "TimedOut", "TooLarge",
        "Unauthenticated", "Unavailable", "Unprocessable", "Unreachable",
    ],
    "moot.testing": [
        "Bench", "BenchError", "BenchRun", "BenchThread", "Handoff", "Replayed", "Said", "Stuck",
        "Tape", "VirtualClock", "asked", "handed_over", "happened", "said",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SURFACE)
def test_the_public_names_of_a_module_are_its_list(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__all__ == SURFACE[name]
    assert all(getattr(module, each) is not None for each in module.__all__)


def test_an_unlisted_name_is_not_importable_from_moot() -> None:
    with pytest.raises(AttributeError):
        moot.nothing  # noqa: B018


def test_pages_and_examples_import_the_public_surface_only() -> None:
    files = [*ROOT.glob("docs/*.md"), ROOT / "README.md", *ROOT.glob("examples/**/*.py")]
    imported = {
        (str(path.relative_to(ROOT)), found)
        for path in files
        for found in re.findall(r"(?:from|import) (moot(?:\.\w+)*)", path.read_text("utf-8"))
    }
    assert sorted(pair for pair in imported if pair[1] not in SURFACE) == []
