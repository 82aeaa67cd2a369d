"""A host that would contradict itself does not start, and says why."""

from typing import Any

import pytest

from moot.api.host.selfcheck import check_claims, find_contradictions
from tests.support.api.caller import Api

WHOLE: dict[str, Any] = {
    "agents": {
        "manifestRuntime": {"supported": True, "installScope": "tenant"},
        "liveRuntime": {"supported": True},
        "roster": {"supported": True, "installScope": "tenant"},
        "deployment": {"supported": True},
    },
    "multiAgent": {"executionModel": {
        "version": 5, "crossChildMemoryConcurrency": "strict",
        "crossHostCausation": {"hostId": "a"},
        "replayDeterminism": {
            "supported": True, "llmCacheKeyRecipe": "r", "refusalDivergenceEmission": True,
        },
    }},
    "memory": {"supported": True},
}  # fmt: skip

WRONG = [
    ("agents.manifestRuntime", None, "agents.roster needs"),
    ("agents.roster.installScope", "host", "one installScope"),
    ("agents.manifestRuntime.supported", False, "agents.liveRuntime needs"),
    ("agents.orgChart", {"supported": True}, ""),
    ("multiAgent.executionModel.crossHostCausation", None, "hostId"),
    ("multiAgent.executionModel.replayDeterminism.llmCacheKeyRecipe", None, "replayDeterminism"),
    ("memory.supported", False, "crossChildMemoryConcurrency"),
    ("agents.deployment", None, "bound to channels"),
]


def changed(path: str, value: Any) -> dict[str, Any]:
    def put(place: dict[str, Any], words: list[str]) -> dict[str, Any]:
        inner = value if len(words) == 1 else put(place[words[0]], words[1:])
        return {**place, words[0]: inner}

    return put(WHOLE, path.split("."))


def test_what_this_host_claims_hangs_together(api: Api) -> None:
    assert find_contradictions(WHOLE, channels=True) == []
    assert find_contradictions(api.get("/.well-known/openwop").json(), channels=True) == []


@pytest.mark.parametrize(("path", "value", "word"), WRONG)
def test_a_contradiction_is_told_in_a_sentence(path: str, value: Any, word: str) -> None:
    claims = changed(path, value)
    if not word:  # whole as long as there is a roster
        assert find_contradictions(claims, channels=True) == []
        claims["agents"] = {**claims["agents"], "roster": None}
        word = "agents.orgChart needs"
    with pytest.raises(ValueError, match=word):
        check_claims(claims, channels=True)
