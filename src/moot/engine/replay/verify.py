"""A run worked out anew from its log, in memory: no run is made, nothing is written or called."""

import asyncio

from msgspec import Struct

from moot.core.verify.walk import Difference, verify
from moot.engine.effects.ledger import made_here
from moot.engine.host import Host
from moot.engine.run_cache import refuse_newer


class Checked(Struct, frozen=True):
    """How many events were looked at, which effects were made on the way, and what is wrong."""

    events: int
    calls: int
    first: Difference | None


async def verified(host: Host, tenant: str, run_id: str) -> Checked:
    """The bytes against their hashes, then every event against what it must be."""
    head = await host.view(tenant, run_id)
    refuse_newer(head.run)
    calls: list[str] = []
    token = made_here.set(calls)
    try:
        for problem in await host.store.verify_log(tenant, run_id):
            place = max(0, problem.sequence)
            found = Difference(place, "hash", "the bytes that were written", problem.what)
            return Checked(head.run.next_sequence, len(calls), found)
        log = await host.runs.log(head)
        first = await asyncio.to_thread(verify, head.flow, tenant, run_id, log)
    finally:
        made_here.reset(token)
    return Checked(len(log), len(calls), first)
