"""Who is called what in a conversation: one name for each, which nobody else has, not even the
host.

Names and roles come from whoever defined an agent or brought a transcript along. They are words in
the host's own sentences, so they are one plain line, and none of them can pass for somebody else.
"""

import re
from typing import Any

from moot.agents.prompts.fencing import RESERVED, label
from moot.core.text.confusables import bare, skeleton

PEOPLE = {"user": "the user", "system": "the host", "all": "everybody"}
_APART = re.compile(r"[\W_]++")


def _shape(name: str) -> str:
    """The same for names that could be taken for one another, also where a provider has no room
    for what stands between words: ``the/host`` is ``the_host`` to some."""
    return skeleton(_APART.sub(" ", bare(name)).strip()) or skeleton(_APART.sub("", name) or name)


_TAKEN = RESERVED | {_shape(name) for name in PEOPLE.values()}


class Cast:
    """The names of one conversation. The same roster gives the same names."""

    def __init__(self, members: dict[str, dict[str, Any]]) -> None:
        self._members = members
        self._names: dict[str, str] = {}
        self._used: set[str] = set(_TAKEN)
        self._all: tuple[str, ...] = ()
        own = [name for name, profile in members.items() if _is_handle(name, profile.get("name"))]
        for member in [*own, *members]:  # who is called by its handle has the first right to it
            if member not in self._names:
                self._give(member, members[member].get("name"))

    def called(self, name: str) -> str:
        """How somebody is called, also who is not a member."""
        known = PEOPLE.get(name) or self._names.get(name)
        return known if known is not None else self._give(name, None)

    def role(self, name: str) -> str:
        return label(self._members.get(name, {}).get("role") or "", 120)

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that somebody is called by."""
        if len(self._all) != 2 * len(self._names):
            handles = tuple(member.rpartition(":")[2] for member in self._names)
            self._all = (*self._names.values(), *handles)
        return self._all

    def _give(self, name: str, wanted: Any) -> str:
        kind, _, handle = name.rpartition(":")
        choices = (wanted, handle, f"{handle} of {kind}", f"member {len(self._names) + 1}")
        for choice in choices:
            found = label(choice) if choice else ""
            if found and _shape(found) not in self._used:
                break
        self._used.add(_shape(found))
        self._names[name] = found
        return found


def _is_handle(name: str, wanted: Any) -> bool:
    return skeleton(label(wanted or "")) == skeleton(name.rpartition(":")[2])
