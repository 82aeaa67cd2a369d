"""Give each participant of a conversation a distinct name for prompts.

Names and roles come from agents and transcripts. They appear in sentences of the host, so each is
one plain line, and no name can pass for another one or for the host."""

import re
from typing import Any

from moot.core.text.confusables import skeleton, strip_marks
from moot.core.text.fencing import RESERVED, plain_label

PEOPLE = {"user": "the user", "system": "the host", "all": "everybody"}
_APART = re.compile(r"[\W_]++")


def _shape(name: str) -> str:
    """Return the same text for names that look alike, also where a provider replaces the
    characters between words: ``the/host`` may become ``the_host``."""
    return skeleton(_APART.sub(" ", strip_marks(name)).strip()) or skeleton(
        _APART.sub("", name) or name
    )


_TAKEN = RESERVED | {_shape(name) for name in PEOPLE.values()}


class SpeakerNames:
    """The names of one conversation. The same roster gives the same names."""

    def __init__(self, members: dict[str, dict[str, Any]]) -> None:
        self._members = members
        self._names: dict[str, str] = {}
        self._used: set[str] = set(_TAKEN)
        self._all: tuple[str, ...] = ()
        handle_members = [
            name for name, profile in members.items() if _is_handle(name, profile.get("name"))
        ]
        for member in [
            *handle_members,
            *members,
        ]:  # a member that is named like its handle gets that name first
            if member not in self._names:
                self._assign_name(member, members[member].get("name"))

    def called(self, name: str) -> str:
        """Return the name of a participant, member or not."""
        assigned = PEOPLE.get(name) or self._names.get(name)
        return assigned if assigned is not None else self._assign_name(name, None)

    def role(self, name: str) -> str:
        return plain_label(self._members.get(name, {}).get("role") or "", 120)

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names and handles in use."""
        if len(self._all) != 2 * len(self._names):
            handles = tuple(member.rpartition(":")[2] for member in self._names)
            self._all = (*self._names.values(), *handles)
        return self._all

    def _assign_name(self, name: str, display_name: Any) -> str:
        kind, _, handle = name.rpartition(":")
        choices = (display_name, handle, f"{handle} of {kind}", f"member {len(self._names) + 1}")
        for choice in choices:
            chosen = plain_label(choice) if choice else ""
            if chosen and _shape(chosen) not in self._used:
                break
        self._used.add(_shape(chosen))
        self._names[name] = chosen
        return chosen


def _is_handle(name: str, display_name: Any) -> bool:
    return skeleton(plain_label(display_name or "")) == skeleton(name.rpartition(":")[2])
