"""The speaker of a turn: the holder of a key and the names it may use."""

from typing import Literal

from msgspec import Struct

from moot.core.text.names import is_person


class Speaker(Struct, frozen=True):
    """The holder of a key and the participants it is bound to. An admin may speak as anyone."""

    principal: str
    names: tuple[str, ...] = ()
    admin: bool = False
    #: an agent that joins an open conversation by speaking; the host answers for ``inside`` ones
    joins: Literal["outside", "inside"] | None = None

    @property
    def person(self) -> str:
        """The name to speak as by default: the person behind the key, if there is one."""
        for name in self.names:
            if is_person(name):
                return name
        if self.admin:
            return "user"
        return self.names[0] if self.names else f"user:{self.principal}"

    @property
    def speaks_for_people(self) -> bool:
        """Whether the key belongs to an admin, a person or no participant; not to an agent."""
        return self.admin or not self.names or any(map(is_person, self.names))
