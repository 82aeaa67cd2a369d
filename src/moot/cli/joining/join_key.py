"""A program's place in a thread: a name that is nobody else's, and a key for it alone."""

import json
from contextlib import suppress
from typing import Any

from moot.cli.joining.participant import Participant
from moot.cli.shared import output
from moot.cli.shared.client import Answer, Api, Client, path_of, refusal
from moot.cli.shared.errors import Exit, Trouble

KEYS = "/v1/host/moot/keys"
#: how long a key is good; it is renewed as long as the program stays
SECONDS = 7 * 24 * 3600
#: the refusal of a second one
TAKEN = "seat_taken"
#: of that time, when a key that is refused must have come to its end: before, it was revoked
NEARLY = 0.9


class Taken(Trouble):
    """Somebody else has the place."""


def check_name(api: Api, name: str) -> None:
    """Raises for one that is a person's, or an agent's for whom the host speaks."""
    from moot.core.text.names import is_person

    short = name.removeprefix("host:")
    if is_person(short.casefold()):
        said = f"'{name}' is a person, and no program speaks for people. Take another name: --as."
        raise Trouble(said, Exit.USAGE)
    if api.door.call("GET", path_of("v1", "host", "moot", "agents", short)).status == 200:
        said = f"'{short}' is an agent of this host, which speaks for it. Take another name: --as."
        raise Trouble(said, Exit.USAGE)


class Guest(Participant):
    """Somebody who joins with a key for this thread alone, and leaves again."""

    def __init__(
        self,
        host: Api,
        thread_id: str,
        name: str,
        profile: dict[str, Any],
        replace: bool = False,
        seconds: int = SECONDS,
    ) -> None:
        from moot.clock import SystemClock

        self._host, self._key_id, self._seconds = host, "", seconds
        self._clock, self._since = SystemClock(), 0
        self._seat = self._clock.new_id("seat_")
        super().__init__(host, thread_id, name)
        check_name(host, name)
        self._take(replace)
        self._mine = False
        try:
            self._mine = self.take_seat(profile)
            self.api = self._joined()
        except Trouble as trouble:
            if self._mine and trouble.code != TAKEN:
                self._come_out()
            self._stand_up()
            raise
        #: what it says is told from what others say by it, whatever keys it will have
        self.mark = self._key_id or self._clock.new_id("said_")

    def renew(self) -> bool:
        """Another key, when the time of the one it has is over. False: the key was revoked."""
        if self._clock.millis() - self._since < self._seconds * 1000 * NEARLY:
            self._mine = False  # who has taken its place stays
            return False
        self.api = self._joined()
        return bool(self._key_id)

    def leave(self) -> None:
        """Is not here any more, takes part no longer where it had come by itself, and the key is no
        good."""
        self.sign("offline")
        if self._mine:
            self._come_out()
        self._stand_up()
        if self._key_id:
            with suppress(Trouble):
                self._host.delete(path_of("v1", "host", "moot", "keys", self._key_id))

    def _come_out(self) -> None:
        for api in (self.api, self._host):  # its own key may have come to its end
            self.api = api
            with suppress(Trouble):
                self.steer(uninvite={"participant_id": self.name})
                return

    def _take(self, replace: bool) -> None:
        """One at a time has a name: two would both answer, and who left would take both along."""
        door = self._host.door
        asked = {"as": self.name, "seat": self._seat, "replace": replace}
        answer = door.call("POST", self._path("seats"), json.dumps(asked).encode())
        if answer.status >= 400:
            raise self._refused(answer)
        if replace:
            self._end_others()

    def _refused(self, answer: Answer) -> Trouble:
        refused = refusal(answer, self._host.door.place)
        if refused.code != TAKEN:
            return refused
        about, short = answer.data()["details"], str(self.name).removeprefix("host:")
        taken = Taken(
            f"{short} is here already, since {output.clock(about['since'])[:8]}, heard of"
            f" {output.age(about['heardAt'])} ago. Take another name, or its place: --replace."
        )
        taken.code = TAKEN
        return taken

    def _stand_up(self) -> None:
        with suppress(Trouble):
            self._host.delete(self._path("seats", self._seat))

    def _end_others(self) -> None:
        """Whoever speaks under this name here with a key for it does so no more."""
        from moot.core.text.names import full_name

        thread, name = self.thread(), full_name(str(self.name))
        place = f"{thread['runId']}/{thread['nodeId']}"
        for key in self._host.get(KEYS)["keys"]:
            bound = key["as"] == [name] and key.get("thread") == place
            if bound and "revokedAt" not in key:
                self._host.delete(path_of("v1", "host", "moot", "keys", key["id"]))

    def _joined(self) -> Api:
        """Who holds such a key already goes on with it."""
        door = self._host.door
        asked = {"as": self.name, "expiresInSeconds": self._seconds, "seat": self._seat}
        since = self._clock.millis()  # before: an answer may take its time, and the key is younger
        answer = door.call("POST", self._path("join"), json.dumps(asked).encode())
        if answer.status == 403:
            return self._host
        if answer.status >= 400:
            raise self._refused(answer)
        made = answer.data()
        self.name, self._key_id = str(made["as"]), str(made["keyId"])
        self._since = since
        return Api(Client(door.place._replace(key=made["token"])))
