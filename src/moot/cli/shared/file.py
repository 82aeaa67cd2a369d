"""Read the database file while no server runs, through the same routes.

Nothing is written. A user who can read the file may see everything in it, so no key is needed.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

from moot.cli.shared.client import ServerTransport
from moot.cli.shared.command_hint import program_name
from moot.cli.shared.errors import CommandError, ExitCode
from moot.client.http.attempts import ConnectionLost, HttpRequest
from moot.client.http.sender import IncomingAnswer, WholeAnswer
from moot.config.server_location import ServerLocation

if TYPE_CHECKING:
    from moot.api.app import App
    from moot.api.http.request import HttpScope, ReceivedMessage
    from moot.store.protocol import Store


class ServerOrFile:
    """Calls the server. If none runs on this machine, reads its file and says so once."""

    def __init__(self, place: ServerLocation) -> None:
        self.place = place
        self.offline = False
        self._server, self._file = ServerTransport(place), DatabaseFile(place)

    @contextmanager
    def open(self, request: HttpRequest) -> Iterator[IncomingAnswer]:
        with ExitStack() as stack:
            yield self._answer(stack, request)

    def _answer(self, stack: ExitStack, request: HttpRequest) -> IncomingAnswer:
        if not self.offline:
            try:
                return stack.enter_context(self._server.open(request))
            except ConnectionLost as lost:
                self._check_file(lost)
            click.echo(f"No server runs; reading {self.place.database} itself.", err=True)
            self.offline = True
        return self._file.answer(request)

    def _check_file(self, lost: ConnectionLost) -> None:
        """Raise an error unless the file may be read in place of the server."""
        if self.place.named:
            raise lost
        if self.place.chosen and not self.place.database.is_file():
            raise CommandError(
                f"there is no file {self.place.database}.", ExitCode.NOT_FOUND
            ) from None
        if not self.place.database.is_file():
            raise CommandError(
                f"no server answers at {self.place.url}, and there is no file"
                f" {self.place.database} to read. Start one with: {program_name()} serve",
                ExitCode.UNREACHABLE,
            ) from lost

    def close(self) -> None:
        self._server.close()


class DatabaseFile:
    """A database file, opened for reading during each call."""

    def __init__(self, place: ServerLocation) -> None:
        self.place = place

    def answer(self, request: HttpRequest) -> WholeAnswer:
        import asyncio

        from moot.store.sqlite.errors import StoreRefused

        try:
            return asyncio.run(self._answer(request))
        except StoreRefused as refusal:
            raise CommandError(str(refusal)) from refusal

    async def _answer(self, request: HttpRequest) -> WholeAnswer:
        from moot.store.sqlite import SqliteStore

        store = await SqliteStore.open(self.place.database, readonly=True)
        try:
            return await _call_app(_build_app(store, self.place), request)
        finally:
            await store.aclose()


def _build_app(store: "Store", place: ServerLocation) -> "App":
    from moot.agents.definitions.registry import AgentRegistry, DeploymentService
    from moot.agents.roster.members import MemberResolver, RosterService
    from moot.api.access.auth import DEFAULT_TENANT, Keyring, hash_secret, new_key
    from moot.api.app import App
    from moot.api.services import Services
    from moot.clock import SystemClock
    from moot.config.settings import Settings
    from moot.engine.host import Host
    from moot.engine.nodes.registry import AnyNodeType
    from moot.engine.workflows.registry import WorkflowRegistry
    from moot.store.protocol import Key

    clock = SystemClock()

    class FileOwnerKeyring(Keyring):
        """Lets the file's owner see everything. A key only selects the tenant."""

        async def caller(self, header: str | None) -> Key:
            key = await store.key_by_hash(hash_secret(place.key)) if place.key else None
            tenant = key.tenant if key else DEFAULT_TENANT
            return new_key(clock, "", "owner of the file", tenant, [], [], admin=True)

    settings = Settings(database=str(place.database))
    host = Host(store, WorkflowRegistry(store, AnyNodeType(), clock), clock)
    agents = AgentRegistry(store, clock)
    roster, deployments = RosterService(store, clock), DeploymentService(store, clock, agents)
    instances = MemberResolver(roster, agents, deployments, clock)
    services = Services(settings, host, store, clock, instances)
    services.keyring = FileOwnerKeyring(store, clock)
    return App(services)


async def _call_app(app: "App", request: HttpRequest) -> WholeAnswer:
    import asyncio

    path, _, query = request.target.partition("?")
    status, headers, pieces, received = 0, {}, [], False

    async def receive() -> "ReceivedMessage":
        nonlocal received
        if received:
            await asyncio.Event().wait()  # the reader never disconnects
        received = True
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            pieces.append(message.get("body", b""))

    scope: HttpScope = {
        "type": "http",
        "method": request.method,
        "path": unquote(path),
        "query_string": query.encode(),
        "headers": [(b"accept", b"application/json")],
    }
    await app(scope, receive, send)
    return WholeAnswer(status, headers, b"".join(pieces))
