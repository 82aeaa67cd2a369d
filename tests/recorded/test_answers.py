"""Recorded requests get the recorded answers; logs keep the bytes of their events."""

import subprocess
import sys

from tests.support.servers import ROOT

FOLDER = ROOT / "tests" / "recorded"


def test_recorded_requests_get_the_recorded_answers() -> None:
    """In a process of its own: what other tests have imported or patched plays no part.

    When an answer changes on purpose, run ``python tests/recorded/scenario.py``, look at the
    difference, and list it in the CHANGELOG.
    """
    played = subprocess.run(
        [sys.executable, str(FOLDER / "scenario.py"), "-"],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert played.returncode == 0, played.stderr
    recorded = (FOLDER / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    answers = played.stdout.splitlines()
    different = [pair for pair in zip(recorded, answers, strict=False) if pair[0] != pair[1]]
    assert different[:1] == []
    assert len(answers) == len(recorded)
