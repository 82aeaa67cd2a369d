"""Who is in a council: how they are called, coloured and found by what is typed."""

from typing import Any

import click

from moot.cli.councils.prompt import Seat
from moot.cli.shared import output

#: one for each seat, in their order, so that a speaker keeps its colour for ever
COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red", "bright_cyan",
           "bright_yellow", "bright_green", "bright_magenta")  # fmt: skip


def identified(handle: str) -> str:
    """The id of who goes by such a handle."""
    from moot.core.threads import agent_bridge  # heavy: read when somebody is named

    return agent_bridge.identified(handle)


class Room:
    """Filled from the thread as it is read, and by the events that come."""

    def __init__(self, me: str = "user") -> None:
        self.me = me
        self._seats: dict[str, Seat] = {}

    @property
    def seats(self) -> list[Seat]:
        return list(self._seats.values())

    def learn(self, agent_id: str, profile: Any = None) -> None:
        """Somebody takes part. A place once given stays."""
        said = profile if isinstance(profile, dict) else {}
        short = agent_id.rpartition(":")[2]
        known = self._seats.get(agent_id)
        name = said.get("name") or (known.name if known else short[:1].upper() + short[1:])
        name = agent_id if self._is_anothers(agent_id, str(name)) else name
        role = said.get("role") or (known.role if known else "")
        self._seats[agent_id] = Seat(agent_id, output.one_line(str(name)), str(role))

    def _is_anothers(self, agent_id: str, name: str) -> bool:
        """Whether it could be taken for the name of who looks, of the host or of another seat: then
        somebody goes by his id."""
        from moot.core.conversations.participants import is_reserved
        from moot.core.text.confusables import skeleton

        others = [seat.name for seat in self.seats if seat.agent_id != agent_id]
        others.append(self.me.rpartition(":")[2])
        return is_reserved(name) or skeleton(name) in map(skeleton, others)

    def read(self, thread: dict[str, Any]) -> None:
        """Everybody a thread names, and who looks at it."""
        self.me = str(thread.get("you", self.me))
        for member in thread.get("participants", []):
            self.learn(str(member.get("agentId")), member)
        for member in thread["state"]["participants"]["invited"]:
            self.learn(str(member["id"]), member["profile"])
        for name, profile in thread.get("floor", {}).get("members", {}).items():
            self.learn(name, profile)

    def called(self, name: str) -> str:
        """As who looks calls him: nobody but himself is ``you``."""
        if name == self.me:
            return "you"
        if name == "system":
            return "moot"
        seat = self._seats.get(name)
        return seat.name if seat else output.one_line(name.rpartition(":")[2])

    def people(self, founder: str) -> list[str]:
        """Who speaks here beside the agents: who looks, and who has begun it."""
        person = founder == "user" or founder.startswith("user:")
        others = [founder] if person and founder != self.me else []
        return [self.called(name) for name in (self.me, *others)]

    def styled(self, name: str) -> str:
        """In the speaker's own colour."""
        names = list(self._seats)
        if name in self._seats:
            colour = COLOURS[names.index(name) % len(COLOURS)]
            return click.style(self.called(name), fg=colour, bold=True)
        return click.style(self.called(name), bold=True, dim=name == "system")
