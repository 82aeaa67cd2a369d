"""Whether what a host claims hangs together. One that contradicts itself does not start."""

from collections.abc import Callable
from typing import Any

Claims = dict[str, Any]
Contradiction = tuple[str, Callable[[Claims], bool]]

#: fields that a host of this level of the execution model says, by level
CAUSES, DETERMINISM, MEMORY = 3, 4, 2


def at(claims: Claims, path: str) -> Any:
    """What is claimed by this dotted name; None when nothing is."""
    found: Any = claims
    for word in path.split("."):
        found = found.get(word) if isinstance(found, dict) else None
    return found


def _level(claims: Claims) -> int:
    found = at(claims, "multiAgent.executionModel.version")
    return found if isinstance(found, int) else 0


def _scopes_differ(claims: Claims) -> bool:
    scopes = [
        at(claims, f"agents.{name}.installScope") or "host"
        for name in ("roster", "manifestRuntime")
    ]
    return bool(at(claims, "agents.roster.supported")) and scopes[0] != scopes[1]


def _without(claims: Claims, this: str, that: str) -> bool:
    return bool(at(claims, this)) and not at(claims, that)


def _undetermined(claims: Claims) -> bool:
    place = "multiAgent.executionModel.replayDeterminism"
    fields = ("supported", "llmCacheKeyRecipe", "refusalDivergenceEmission")
    return _level(claims) >= DETERMINISM and any(
        at(claims, f"{place}.{field}") is None for field in fields
    )


#: what must not be so, and how it is told
CONTRADICTIONS: tuple[Contradiction, ...] = (
    (
        "agents.roster needs agents.manifestRuntime: a standing agent is an instance of an agent.",
        lambda said: _without(said, "agents.roster.supported", "agents.manifestRuntime.supported"),
    ),
    ("agents.roster and agents.manifestRuntime must have one installScope.", _scopes_differ),
    (
        "agents.liveRuntime needs agents.manifestRuntime.",
        lambda said: _without(
            said, "agents.liveRuntime.supported", "agents.manifestRuntime.supported"
        ),
    ),
    (
        "agents.orgChart needs agents.roster.",
        lambda said: _without(said, "agents.orgChart.supported", "agents.roster.supported"),
    ),
    (
        "An execution model from version 3 on needs crossHostCausation.hostId.",
        lambda said: (
            _level(said) >= CAUSES
            and not at(said, "multiAgent.executionModel.crossHostCausation.hostId")
        ),
    ),
    ("An execution model from version 4 on needs all of replayDeterminism.", _undetermined),
    (
        "crossChildMemoryConcurrency is claimed, and memory.supported is not.",
        lambda said: (
            _level(said) >= MEMORY
            and _without(
                said, "multiAgent.executionModel.crossChildMemoryConcurrency", "memory.supported"
            )
        ),
    ),
)


def contradictions(claims: Claims, channels: bool) -> list[str]:
    """Everything that does not hang together, in sentences. ``channels``: whether a standing agent
    is bound to one."""
    found = [sentence for sentence, is_so in CONTRADICTIONS if is_so(claims)]
    if channels and not at(claims, "agents.deployment.supported"):
        found.append("Standing agents are bound to channels, and agents.deployment is not claimed.")
    return found


def refuse(claims: Claims, channels: bool = False) -> None:
    """Raises ValueError, which ends the start with its sentence."""
    found = contradictions(claims, channels)
    if found:
        raise ValueError(f"What this host claims contradicts itself: {' '.join(found)}")
