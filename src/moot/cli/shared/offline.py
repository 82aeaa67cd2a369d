"""Reading the file itself while no server runs: the same routes, answered in this process.

Nothing is written. Whoever may read the file may see everything in it, so no key is asked for.
"""

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

from moot.cli.shared.client import Answer, Client, Unreachable
from moot.cli.shared.command_hint import program
from moot.cli.shared.errors import Exit, Trouble
from moot.config.place import Place

if TYPE_CHECKING:
    from moot.api.app import App
    from moot.store.protocol import Store


class ServerOrFile:
    """Asks the server; when none runs on this machine, reads its file and says so once."""

    def __init__(self, where: Place) -> None:
        self.place = where
        self.offline = False
        self._client = Client(where)
        self._file = File(where)

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] = {},  # noqa: B006 - only read
    ) -> Answer:
        if self.offline:
            return self._file.call(method, path)
        try:
            return self._client.call(method, path, body, headers)
        except Unreachable as trouble:
            if self.place.named:
                raise
            if self.place.chosen and not self.place.database.is_file():
                raise Trouble(f"there is no file {self.place.database}.", Exit.NOT_FOUND) from None
            if not self.place.database.is_file():
                raise Trouble(
                    f"no server answers at {self.place.url}, and there is no file"
                    f" {self.place.database} to read. Start one with: {program()} serve",
                    Exit.UNREACHABLE,
                ) from trouble
        click.echo(f"No server runs; reading {self.place.database} itself.", err=True)
        self.offline = True
        return self._file.call(method, path)


class File:
    """A database, opened to read for one call at a time."""

    def __init__(self, where: Place) -> None:
        self.place = where

    def call(self, method: str, path: str) -> Answer:
        from moot.store.sqlite.errors import StoreRefused

        try:
            return asyncio.run(self._call(method, path))
        except StoreRefused as refusal:
            raise Trouble(str(refusal)) from refusal

    async def _call(self, method: str, path: str) -> Answer:
        from moot.store.sqlite import SqliteStore

        store = await SqliteStore.open(self.place.database, readonly=True)
        try:
            return await _answer(_app(store, self.place), method, path)
        finally:
            await store.aclose()


def _app(store: "Store", where: Place) -> "App":
    from moot.agents.definitions.deployments import Deployments
    from moot.agents.definitions.registry import Agents
    from moot.agents.roster.members import Roster
    from moot.agents.roster.resolve import Instances
    from moot.api.access.auth import DEFAULT_TENANT, Keyring, hash_of, new_key
    from moot.api.app import App
    from moot.api.services import Services
    from moot.clock import SystemClock
    from moot.config.settings import Settings
    from moot.engine.host import Host
    from moot.engine.nodes.unknown import AnyType
    from moot.engine.workflows.registry import Flows
    from moot.store.protocol import Key

    clock = SystemClock()

    class Owner(Keyring):
        """A key that is given says whose runs are meant; all else the file's owner may see."""

        async def caller(self, header: str | None) -> Key:
            known = await store.key_by_hash(hash_of(where.key)) if where.key else None
            tenant = known.tenant if known else DEFAULT_TENANT
            return new_key(clock, "", "owner of the file", tenant, [], [], admin=True)

    settings = Settings(database=str(where.database))
    host = Host(store, Flows(store, AnyType(), clock), clock)
    agents = Agents(store, clock)
    roster, deployments = Roster(store, clock), Deployments(store, clock, agents)
    instances = Instances(roster, agents, deployments, clock)
    services = Services(settings, host, store, clock, instances)
    services.keyring = Owner(store, clock)
    return App(services)


async def _answer(app: "App", method: str, path: str) -> Answer:
    path, _, query = path.partition("?")
    status, headers, pieces, asked = 0, {}, [], False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()  # who reads it stays to the end
        asked = True
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            pieces.append(message.get("body", b""))

    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "query_string": query.encode(),
        "headers": [(b"accept", b"application/json")],
    }
    await app(scope, receive, send)
    return Answer(status, headers, b"".join(pieces))
