"""The members of a council: names, colours, and lookup by id."""

from typing import Any

import click

from moot.cli.councils.prompt import PromptMember
from moot.cli.shared import output
from moot.core.text.confusables import skeleton
from moot.core.text.names import is_reserved
from moot.wire.threads import ThreadView

#: one for each member, in their order, so that a speaker keeps its colour
COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red", "bright_cyan",
           "bright_yellow", "bright_green", "bright_magenta")  # fmt: skip


class CouncilRoster:
    """Everyone in a conversation, filled from the thread and from its events."""

    def __init__(self, me: str = "user") -> None:
        self.me = me
        self._members: dict[str, PromptMember] = {}

    @property
    def members(self) -> list[PromptMember]:
        return list(self._members.values())

    def learn(self, agent_id: str, profile: Any = None) -> None:
        """Add or update a participant. Its place, and so its colour, stays."""
        details = profile if isinstance(profile, dict) else {}
        short = agent_id.rpartition(":")[2]
        member = self._members.get(agent_id)
        name = details.get("name") or (member.name if member else short[:1].upper() + short[1:])
        name = agent_id if self._is_anothers(agent_id, str(name)) else name
        role = details.get("role") or (member.role if member else "")
        self._members[agent_id] = PromptMember(agent_id, output.one_line(str(name)), str(role))

    def _is_anothers(self, agent_id: str, name: str) -> bool:
        """Whether a name looks like the reader's, the host's or another member's.

        Such a participant is shown by its id.
        """
        others = [member.name for member in self.members if member.agent_id != agent_id]
        others.append(self.me.rpartition(":")[2])
        return is_reserved(name) or skeleton(name) in map(skeleton, others)

    def read(self, thread: ThreadView) -> None:
        """Add everyone that a thread names, and its reader."""
        self.me = thread.you or self.me
        for participant in thread.participants:
            self.learn(participant.agent_id)
        for member in thread.state.participants.invited:
            self.learn(member.id, member.profile)
        for name, profile in (thread.floor.members if thread.floor else {}).items():
            self.learn(name, profile)

    def called(self, name: str) -> str:
        """Return the name that the reader sees; the reader is ``you``."""
        if name == self.me:
            return "you"
        if name == "system":
            return "moot"
        member = self._members.get(name)
        return member.name if member else output.one_line(name.rpartition(":")[2])

    def people(self, founder: str) -> list[str]:
        """Return the names of the people: the reader, and the person who started the thread."""
        person = founder == "user" or founder.startswith("user:")
        others = [founder] if person and founder != self.me else []
        return [self.called(name) for name in (self.me, *others)]

    def styled(self, name: str) -> str:
        """Return the name in the speaker's own colour."""
        names = list(self._members)
        if name in self._members:
            colour = COLOURS[names.index(name) % len(COLOURS)]
            return click.style(self.called(name), fg=colour, bold=True)
        return click.style(self.called(name), bold=True, dim=name == "system")
