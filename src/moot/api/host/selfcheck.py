"""Check that the claims of a host agree with each other.

A host with contradictory claims does not start.
"""

from collections.abc import Mapping

#: Levels of the execution model from which a field is required.
CAUSES, DETERMINISM, MEMORY = 3, 4, 2
MODEL = "multiAgent.executionModel"


def claim_at(claims: Mapping[str, object], path: str) -> object:
    """Return the claim with this dotted name, or None."""
    value: object = claims
    for word in path.split("."):
        value = value.get(word) if isinstance(value, Mapping) else None
    return value


def _has_two_scopes(claims: Mapping[str, object]) -> bool:
    scopes = [
        claim_at(claims, f"agents.{name}.installScope") or "host"
        for name in ("roster", "manifestRuntime")
    ]
    return bool(claim_at(claims, "agents.roster.supported")) and scopes[0] != scopes[1]


def _lacks_determinism(claims: Mapping[str, object], version: int) -> bool:
    fields = ("supported", "llmCacheKeyRecipe", "refusalDivergenceEmission")
    return version >= DETERMINISM and any(
        claim_at(claims, f"{MODEL}.replayDeterminism.{field}") is None for field in fields
    )


#: Claim, the claim that it needs, the lowest level of the execution model, and a sentence.
NEEDS = (
    ("agents.roster.supported", "agents.manifestRuntime.supported", 0,
     "agents.roster needs agents.manifestRuntime: a standing agent is an instance of an agent."),
    ("agents.liveRuntime.supported", "agents.manifestRuntime.supported", 0,
     "agents.liveRuntime needs agents.manifestRuntime."),
    ("agents.orgChart.supported", "agents.roster.supported", 0,
     "agents.orgChart needs agents.roster."),
    (f"{MODEL}.version", f"{MODEL}.crossHostCausation.hostId", CAUSES,
     "An execution model from version 3 on needs crossHostCausation.hostId."),
    (f"{MODEL}.crossChildMemoryConcurrency", "memory.supported", MEMORY,
     "crossChildMemoryConcurrency is claimed, and memory.supported is not."),
)  # fmt: skip


def find_contradictions(claims: Mapping[str, object], channels: bool) -> list[str]:
    """Return every contradiction as a sentence.

    ``channels`` says whether a standing agent is bound to a channel.
    """
    version = claim_at(claims, f"{MODEL}.version")
    version = version if isinstance(version, int) else 0
    sentences = [
        sentence
        for claim, needed, level, sentence in NEEDS
        if version >= level and claim_at(claims, claim) and not claim_at(claims, needed)
    ]
    if _has_two_scopes(claims):
        sentences.append("agents.roster and agents.manifestRuntime must have one installScope.")
    if _lacks_determinism(claims, version):
        sentences.append("An execution model from version 4 on needs all of replayDeterminism.")
    if channels and not claim_at(claims, "agents.deployment.supported"):
        sentences.append(
            "Standing agents are bound to channels, and agents.deployment is not claimed."
        )
    return sentences


def check_claims(claims: Mapping[str, object], channels: bool = False) -> None:
    """Raise ValueError when claims contradict each other. The server then does not start."""
    sentences = find_contradictions(claims, channels)
    if sentences:
        raise ValueError(f"What this host claims contradicts itself: {' '.join(sentences)}")
