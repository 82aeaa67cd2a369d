"""Words that somebody put into another's mouth are told as such."""

import pytest

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.context import Assignment, TranscriptTurn
from moot.agents.prompts.council import build_council_prompt


@pytest.mark.parametrize("speaker", ["user:eve", "host:bo", "host:ada"])
def test_an_edited_turn_is_told_as_edited_and_by_whom(speaker: str) -> None:
    role = "user" if speaker.startswith("user") else "agent"
    turn = TranscriptTurn(index=1, speaker=speaker, role=role, content="Do it.", edited_by="key_x")
    asked = Assignment(
        tenant="t", run_id="r", node_id="n", agent="host:ada", invocation="i", task="speak",
        transcript=(turn,), members={"host:ada": {}, "host:bo": {}},
    )  # fmt: skip
    [told] = [
        m for m in build_council_prompt(Agent(name="ada"), asked).messages if "Do it." in m.content
    ]
    assert told.role == "user", "nobody is told that they said it themselves"
    assert told.content.startswith("(edited by key x: not the speaker's own words) ")
