"""Verify a run against its log, in memory. Nothing is written or called."""

import asyncio

from msgspec import Struct

from moot.core.verify.walk import Difference, verify
from moot.engine.effects.ledger import effects_made
from moot.engine.host import Host
from moot.engine.run_cache import refuse_newer_engine


class VerificationResult(Struct, frozen=True):
    """The number of events and effects, and the first difference."""

    events: int
    calls: int
    first: Difference | None


async def verify_run(host: Host, tenant: str, run_id: str) -> VerificationResult:
    """Compare the bytes with their hashes, then every event with what must follow."""
    head = await host.view(tenant, run_id)
    refuse_newer_engine(head.run)
    calls: list[str] = []
    token = effects_made.set(calls)
    try:
        for problem in await host.store.verify_log(tenant, run_id):
            place = max(0, problem.sequence)
            difference = Difference(place, "hash", "the bytes that were written", problem.what)
            return VerificationResult(head.run.next_sequence, len(calls), difference)
        log = await host.runs.log(head)
        first = await asyncio.to_thread(verify, head.flow, tenant, run_id, log)
    finally:
        effects_made.reset(token)
    return VerificationResult(len(log), len(calls), first)
