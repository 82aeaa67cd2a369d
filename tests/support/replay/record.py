"""Records the golden logs of a version, once: ``python -m tests.support.replay.record 0.1.0``.

What is there already is never written again: a released log stays readable for ever.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from moot.core.events import decode
from tests.support.event_payloads import payload_json
from tests.support.replay.agents import agents, models, refusals
from tests.support.replay.councils import interrupted, led, summed_up, unheard
from tests.support.replay.golden_logs import (
    DEFINITIONS,
    LOGS,
    beside,
    folded,
    pretty,
    read_log,
    shown,
)
from tests.support.replay.nodes import (
    branches,
    caps,
    channels,
    effects,
    families,
    given_up,
    late,
    memories,
    pauses,
)
from tests.support.replay.peers import elsewhere, elsewhere_twice
from tests.support.replay.staff import deployed, staff
from tests.support.replay.standing_agents import standing, woken
from tests.support.replay.story import Story
from tests.support.replay.threads import seated, threaded
from tests.support.replay.votes import voted
from tests.support.replay.waits import (
    approvals,
    branched,
    by_itself,
    council,
    gathering,
    paused_wait,
    questions,
    supervisor,
    waiting_child,
)

SCENES: tuple[Callable[[Story], Awaitable[None]], ...] = (
    branches, channels, families, pauses, effects, caps, late, approvals, questions, council,
    gathering, by_itself, waiting_child, paused_wait, supervisor, branched, elsewhere,
    elsewhere_twice,
    agents, models, refusals,
    memories, staff, deployed, led, interrupted, voted, summed_up, unheard, threaded,
    standing, woken, given_up, seated,
)  # fmt: skip


async def record(version: str) -> list[str]:
    """The names of the logs that were written."""
    written = []
    LOGS.mkdir(exist_ok=True)
    DEFINITIONS.mkdir(exist_ok=True)
    for scene in SCENES:
        story = Story()
        await scene(story)
        for number, (tenant, run_id) in enumerate(await story.store.runs()):
            name = f"{version}-{scene.__name__}" + (f"-child{number}" if number else "")
            path = LOGS / f"{name}.jsonl"
            rows = await story.store.read(tenant, run_id, -1, 100_000)
            digest = payload_json(decode(rows[0]))["definition"]
            known = await story.store.definition_by_digest(tenant, digest)
            if known is not None:
                (DEFINITIONS / f"{digest}.json").write_bytes(known.body)
            if path.exists():
                continue
            path.write_bytes(b"\n".join(rows) + b"\n")
            beside(path).write_bytes(pretty(shown(folded(read_log(path)))))
            written.append(name)
        await story.host.aclose()
    return written


if __name__ == "__main__":
    for each in asyncio.run(record(sys.argv[1])):
        print(each)
