"""A guest in a thread: an exclusive name, and a key for this thread alone."""

import json
from contextlib import suppress
from typing import Any

from moot.cli.joining.participant import Participant
from moot.cli.shared import output
from moot.cli.shared.client import Api, HttpAnswer, api_path, error_from_answer
from moot.cli.shared.errors import CommandError, ExitCode

KEYS = "/v1/host/moot/keys"
#: lifetime of a key; it is renewed as long as the program stays
KEY_SECONDS = 7 * 24 * 3600
#: the code that refuses a second program under the same name
SEAT_TAKEN = "seat_taken"
#: a key that is refused after this share of its lifetime has expired; before, it was revoked
EXPIRED_SHARE = 0.9


class JoinSeatTaken(CommandError):
    """Another program has the name."""


def check_name(api: Api, name: str) -> None:
    """Raise CommandError for the name of a person, or of an agent that the host speaks for."""
    from moot.core.text.names import is_person

    short = name.removeprefix("host:")
    if is_person(short.casefold()):
        message = (
            f"'{name}' is a person, and no program speaks for people. Take another name: --as."
        )
        raise CommandError(message, ExitCode.USAGE)
    if api.backend.call("GET", api_path("v1", "host", "moot", "agents", short)).status == 200:
        message = (
            f"'{short}' is an agent of this host, which speaks for it. Take another name: --as."
        )
        raise CommandError(message, ExitCode.USAGE)


class GuestParticipant(Participant):
    """A program that joins with a key for this thread alone, and leaves again."""

    def __init__(
        self,
        host: Api,
        thread_id: str,
        name: str,
        profile: dict[str, Any],
        replace: bool = False,
        seconds: int = KEY_SECONDS,
    ) -> None:
        from moot.clock import SystemClock

        self._host, self._key_id, self._seconds = host, "", seconds
        self._clock, self._since = SystemClock(), 0
        self._seat = self._clock.new_id("seat_")
        super().__init__(host, thread_id, name)
        check_name(host, name)
        self._take_seat_name(replace)
        self._invited_itself = False
        try:
            self._invited_itself = self.take_seat(profile)
            self.api = self._request_key()
        except CommandError as error:
            if self._invited_itself and error.code != SEAT_TAKEN:
                self._uninvite()
            self._release_seat()
            raise
        #: marks its own turns, whatever keys it will have
        self.mark = self._key_id or self._clock.new_id("said_")

    def renew(self) -> bool:
        """Request another key when this one has expired. Return False if the key was revoked."""
        if self._clock.millis() - self._since < self._seconds * 1000 * EXPIRED_SHARE:
            self._invited_itself = False  # the program that replaced it stays
            return False
        self.api = self._request_key()
        return bool(self._key_id)

    def leave(self) -> None:
        """Go offline, leave the conversation if it joined by itself, and delete the key."""
        self.sign("offline")
        if self._invited_itself:
            self._uninvite()
        self._release_seat()
        if self._key_id:
            with suppress(CommandError):
                self._host.delete(api_path("v1", "host", "moot", "keys", self._key_id))

    def _uninvite(self) -> None:
        for api in (self.api, self._host):  # its own key may have expired
            self.api = api
            with suppress(CommandError):
                self.steer(uninvite={"participant_id": self.name})
                return

    def _take_seat_name(self, replace: bool) -> None:
        """Claim the name. Two programs under one name would both answer, and leave together."""
        backend = self._host.backend
        request = {"as": self.name, "seat": self._seat, "replace": replace}
        answer = backend.call("POST", self._path("seats"), json.dumps(request).encode())
        if answer.status >= 400:
            raise self._refusal_error(answer)
        if replace:
            self._end_others()

    def _refusal_error(self, answer: HttpAnswer) -> CommandError:
        error = error_from_answer(answer, self._host.backend.place)
        if error.code != SEAT_TAKEN:
            return error
        details, short = answer.data()["details"], str(self.name).removeprefix("host:")
        taken = JoinSeatTaken(
            f"{short} is here already, since {output.clock_time(details['since'])[:8]}, heard of"
            f" {output.format_age(details['heardAt'])} ago."
            " Take another name, or its place: --replace."
        )
        taken.code = SEAT_TAKEN
        return taken

    def _release_seat(self) -> None:
        with suppress(CommandError):
            self._host.delete(self._path("seats", self._seat))

    def _end_others(self) -> None:
        """Delete other keys for this name in this thread."""
        from moot.core.text.names import full_name

        thread, name = self.thread(), full_name(str(self.name))
        place = f"{thread['runId']}/{thread['nodeId']}"
        for key in self._host.get(KEYS)["keys"]:
            bound = key["as"] == [name] and key.get("thread") == place
            if bound and "revokedAt" not in key:
                self._host.delete(api_path("v1", "host", "moot", "keys", key["id"]))

    def _request_key(self) -> Api:
        """Return an API with a new key, or the host's API if it already has such a key."""
        backend = self._host.backend
        request = {"as": self.name, "expiresInSeconds": self._seconds, "seat": self._seat}
        since = self._clock.millis()  # before the request, because the key is made later
        answer = backend.call("POST", self._path("join"), json.dumps(request).encode())
        if answer.status == 403:
            return self._host
        if answer.status >= 400:
            raise self._refusal_error(answer)
        key = answer.data()
        self.name, self._key_id = str(key["as"]), str(key["keyId"])
        self._since = since
        return Api(backend.place._replace(key=key["token"]))
