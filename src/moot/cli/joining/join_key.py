"""A guest in a thread: an exclusive name, and a key for this thread alone."""

from contextlib import suppress

from moot.cli.joining.participant import Participant
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.cli.shared.errors import CommandError, ExitCode
from moot.client.operations import host, threads
from moot.clock import SystemClock
from moot.core.text.names import full_name, is_person

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
    short = name.removeprefix("host:")
    if is_person(short.casefold()):
        message = (
            f"'{name}' is a person, and no program speaks for people. Take another name: --as."
        )
        raise CommandError(message, ExitCode.USAGE)
    if _is_agent(api, short):
        message = (
            f"'{short}' is an agent of this host, which speaks for it. Take another name: --as."
        )
        raise CommandError(message, ExitCode.USAGE)


def _is_agent(api: Api, name: str) -> bool:
    try:
        api.send(host.get_agent(name))
    except CommandError as error:
        if error.status is None:
            raise
        return False
    return True


class GuestParticipant(Participant):
    """A program that joins with a key for this thread alone, and leaves again."""

    def __init__(
        self,
        owner: Api,
        thread_id: str,
        name: str,
        profile: dict[str, str],
        replace: bool = False,
        seconds: int = KEY_SECONDS,
    ) -> None:
        self._host, self._key_id, self._seconds = owner, "", seconds
        self._clock, self._since = SystemClock(), 0
        self._seat = self._clock.new_id("seat_")
        super().__init__(owner, thread_id, name)
        check_name(owner, name)
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
                self._host.send(host.revoke_key(self._key_id))

    def _uninvite(self) -> None:
        for api in (self.api, self._host):  # its own key may have expired
            self.api = api
            with suppress(CommandError):
                self.steer(uninvite={"participant_id": self.name})
                return

    def _take_seat_name(self, replace: bool) -> None:
        """Claim the name. Two programs under one name would both answer, and leave together."""
        call = threads.take_seat(self.thread_id, str(self.name), self._seat, replace=replace)
        try:
            self._host.send(call)
        except CommandError as error:
            raise self._refusal_error(error) from None
        if replace:
            self._end_others()

    def _refusal_error(self, error: CommandError) -> CommandError:
        if error.code != SEAT_TAKEN:
            return error
        details, short = error.details, str(self.name).removeprefix("host:")
        taken = JoinSeatTaken(
            f"{short} is here already, since {output.clock_time(details['since'])[:8]}, heard of"
            f" {output.format_age(details['heardAt'])} ago."
            " Take another name, or its place: --replace."
        )
        taken.code = SEAT_TAKEN
        return taken

    def _release_seat(self) -> None:
        with suppress(CommandError):
            self._host.send(threads.leave_seat(self.thread_id, self._seat))

    def _end_others(self) -> None:
        """Delete other keys for this name in this thread."""
        thread, name = self.thread(), full_name(str(self.name))
        place = f"{thread.run_id}/{thread.node_id}"
        for key in self._host.send(host.list_keys()).keys:
            bound = key.speaks_as == [name] and key.thread == place
            if bound and key.revoked_at is None:
                self._host.send(host.revoke_key(key.id))

    def _request_key(self) -> Api:
        """Return an API with a new key, or the host's API if it already has such a key."""
        call = threads.create_join_key(
            self.thread_id, str(self.name), seconds=self._seconds, seat=self._seat
        )
        since = self._clock.millis()  # before the request, because the key is made later
        try:
            key = self._host.send(call)
        except CommandError as error:
            if error.status == 403:
                return self._host
            raise self._refusal_error(error) from None
        self.name, self._key_id, self._since = key.speaks_as, key.key_id, since
        return Api(self._host.place._replace(key=key.token))
