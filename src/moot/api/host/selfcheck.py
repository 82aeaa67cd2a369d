"""Check that the claims of a host agree with each other.

A host with contradictory claims does not start.
"""

from collections.abc import Callable
from typing import Any

Claims = dict[str, Any]
Contradiction = tuple[str, Callable[[Claims], bool]]

#: Levels of the execution model from which a field is required.
CAUSES, DETERMINISM, MEMORY = 3, 4, 2


def claim_at(claims: Claims, path: str) -> Any:
    """Return the claim with this dotted name, or None."""
    value: Any = claims
    for word in path.split("."):
        value = value.get(word) if isinstance(value, dict) else None
    return value


def _model_version(claims: Claims) -> int:
    version = claim_at(claims, "multiAgent.executionModel.version")
    return version if isinstance(version, int) else 0


def _has_two_scopes(claims: Claims) -> bool:
    scopes = [
        claim_at(claims, f"agents.{name}.installScope") or "host"
        for name in ("roster", "manifestRuntime")
    ]
    return bool(claim_at(claims, "agents.roster.supported")) and scopes[0] != scopes[1]


def _lacks(claims: Claims, this: str, that: str) -> bool:
    return bool(claim_at(claims, this)) and not claim_at(claims, that)


def _lacks_determinism(claims: Claims) -> bool:
    place = "multiAgent.executionModel.replayDeterminism"
    fields = ("supported", "llmCacheKeyRecipe", "refusalDivergenceEmission")
    return _model_version(claims) >= DETERMINISM and any(
        claim_at(claims, f"{place}.{field}") is None for field in fields
    )


#: Sentence about a contradiction -> test whether the claims have it.
CONTRADICTIONS: tuple[Contradiction, ...] = (
    (
        "agents.roster needs agents.manifestRuntime: a standing agent is an instance of an agent.",
        lambda claims: _lacks(
            claims, "agents.roster.supported", "agents.manifestRuntime.supported"
        ),
    ),
    ("agents.roster and agents.manifestRuntime must have one installScope.", _has_two_scopes),
    (
        "agents.liveRuntime needs agents.manifestRuntime.",
        lambda claims: _lacks(
            claims, "agents.liveRuntime.supported", "agents.manifestRuntime.supported"
        ),
    ),
    (
        "agents.orgChart needs agents.roster.",
        lambda claims: _lacks(claims, "agents.orgChart.supported", "agents.roster.supported"),
    ),
    (
        "An execution model from version 3 on needs crossHostCausation.hostId.",
        lambda claims: (
            _model_version(claims) >= CAUSES
            and not claim_at(claims, "multiAgent.executionModel.crossHostCausation.hostId")
        ),
    ),
    ("An execution model from version 4 on needs all of replayDeterminism.", _lacks_determinism),
    (
        "crossChildMemoryConcurrency is claimed, and memory.supported is not.",
        lambda claims: (
            _model_version(claims) >= MEMORY
            and _lacks(
                claims, "multiAgent.executionModel.crossChildMemoryConcurrency", "memory.supported"
            )
        ),
    ),
)


def find_contradictions(claims: Claims, channels: bool) -> list[str]:
    """Return every contradiction as a sentence.

    ``channels`` says whether a standing agent is bound to a channel.
    """
    sentences = [sentence for sentence, is_so in CONTRADICTIONS if is_so(claims)]
    if channels and not claim_at(claims, "agents.deployment.supported"):
        sentences.append(
            "Standing agents are bound to channels, and agents.deployment is not claimed."
        )
    return sentences


def check_claims(claims: Claims, channels: bool = False) -> None:
    """Raise ValueError when claims contradict each other. The server then does not start."""
    sentences = find_contradictions(claims, channels)
    if sentences:
        raise ValueError(f"What this host claims contradicts itself: {' '.join(sentences)}")
