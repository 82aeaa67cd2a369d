"""The speaker of a turn: the holder of a key and the names it may use."""

from typing import Literal

from msgspec import Struct

from moot.core.text.names import is_person


class Speaker(Struct, frozen=True):
    """Who holds the key, and the participants it is bound to. An administrator speaks as anyone."""

    principal: str
    names: tuple[str, ...] = ()
    admin: bool = False
    #: an agent comes into an open conversation by speaking in it, and the host speaks for it or not
    joins: Literal["outside", "inside"] | None = None

    @property
    def person(self) -> str:
        """Who speaks when nobody is named: the human behind the key, if there is one. The key of
        an agent is no person's."""
        for name in self.names:
            if is_person(name):
                return name
        if self.admin:
            return "user"
        return self.names[0] if self.names else f"user:{self.principal}"

    @property
    def speaks_for_people(self) -> bool:
        """An administrator, a person, or a key that is bound to nobody; not an agent's."""
        return self.admin or not self.names or any(map(is_person, self.names))
