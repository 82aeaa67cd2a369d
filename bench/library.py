"""A database full of conversations, written through the store as a server would have left it.

``python -m bench.library FILE TURNS LONG`` in a process of its own: so many turns in threads of
500, one thread of LONG turns besides; prints the id of that one. Each log is that of a real thread,
said again under another id with other words.
"""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import uvloop

from moot.core.payloads.conversations import ConversationExchanged

TENANT = "default"
THREAD_TURNS = 500
#: turns of one commit
TOGETHER = 5000
#: one turn a second, back from here
UNTIL_MS = 1_767_225_600_000
SPEAKERS = ("host:ada", "host:bo", "host:cy", "user:eve", "user")
#: in one turn of so many
RARE, EVERY = "zanzibar", 50_000
SNAPSHOT_EVERY = 1000

Event = dict[str, Any]


class Words:
    """Texts of a made-up language in which few words are common and most are rare."""

    def __init__(self) -> None:
        draw = random.Random(7)
        letters = "etaoinshrdlucmfwypvbgkjqxz"
        found = {
            "".join(draw.choices(letters, range(26, 0, -1), k=draw.randint(2, 9)))
            for _ in range(40_000)
        }
        self.known = sorted(found, key=lambda word: (len(word), word))
        weights = [1 / (place + 2) for place in range(len(self.known))]
        self._pool = draw.choices(self.known, weights, k=1_000_000)

    def text(self, number: int) -> str:
        start = number * 7919 % 999_900
        length = 5 + number * 31 % 40
        words = self._pool[start : start + length]
        if number % EVERY == EVERY // 2:
            words[2] = RARE
        return " ".join(words).capitalize() + "."


async def build(file: str, turns: int, long: int) -> str:
    from moot.clock import SystemClock
    from moot.engine.host import Host
    from moot.engine.nodes import registry
    from moot.engine.workflows.registry import WorkflowRegistry
    from moot.store.sqlite import SqliteStore

    clock = SystemClock()
    store = await SqliteStore.open(file)
    host = Host(store, WorkflowRegistry(store, registry.built_in_types(), clock), clock)
    pattern = await _pattern(host)
    words, number = Words(), 0
    batch: list[Any] = []
    for each in range(turns // THREAD_TURNS):
        batch += _log(pattern, f"th_{each:020d}", words, number, THREAD_TURNS, turns)
        number += THREAD_TURNS
        if len(batch) * THREAD_TURNS >= TOGETHER:
            await _commit(store, batch)
    await _commit(store, batch)
    name = f"th_{'l' * 20}"
    for append in _log(pattern, name, words, 0, long, long):
        await _commit(store, [append])
    while store._writer._indexer.waiting:
        await store._writer.catch_up()
    await host.aclose()
    return name


async def _commit(store: Any, batch: list[Any]) -> None:
    from moot.store.protocol import Batch

    await store.commit(Batch(appends=batch))
    batch.clear()


async def _pattern(host: Any) -> list[Event]:
    """The log of a real thread with one turn."""
    from moot.core.runs.answers import GateAnswer
    from moot.core.runs.start import StartRun
    from moot.core.speaker import Speaker
    from moot.core.state.conversation import THREAD
    from moot.engine.workflows.built_in import TALK

    flow = await host.flows.newest(TENANT, THREAD)
    at = host.clock.millis()
    invited = [{"agentId": name} for name in SPEAKERS[:3]]
    inputs = {"question": "What do we say?", "title": "A thread of the bench", "invited": invited}
    start = StartRun(tenant=TENANT, principal="bench", at=at, limits=host.limits, inputs=inputs)
    run = await host.create(flow, start)
    who = Speaker("bench", SPEAKERS, admin=True)
    said = {"role": "agent", "speakerId": SPEAKERS[0], "content": "Something."}
    answer = GateAnswer(node_id=TALK, value=said, who=who, at=at)
    await host.handle(TENANT, run.run_id, answer)
    rows = await host.store.read(TENANT, run.run_id, -1, 100)
    return [json.loads(row) for row in rows]


def _log(
    pattern: list[Event], name: str, words: Words, first: int, count: int, of: int
) -> list[Any]:
    """One thread with everything that is derived from it: up to the last cached fold, and the
    rest."""
    from moot.core import events
    from moot.core.state.run import FOLD_VERSION, Run, apply
    from moot.engine.derived_rows import DerivedRows, inbox_rows, run_row
    from moot.store.protocol import Append

    told = list(_events(pattern, name, words, first, count, of))
    cut = len(told) // SNAPSHOT_EVERY * SNAPSHOT_EVERY
    run, found = Run(name, tenant=TENANT), []
    for part in (told[:cut], told[cut:]):
        gathered, start = DerivedRows(), run.next_sequence
        for event in part:
            apply(run, event)
            gathered.take(run, event)
        append = Append(
            tenant=TENANT, run_id=name, first=start, events=list(map(events.encode, part)),
            row=run_row(run), work=None, inbox=inbox_rows(run), messages=gathered.messages,
            texts=gathered.texts,
        )  # fmt: skip
        if run.next_sequence == cut:
            append.snapshot, append.fold_version = msgspec.json.encode(run), FOLD_VERSION
        if part:
            found.append(append)
    return found


def _events(
    pattern: list[Event], name: str, words: Words, first: int, count: int, of: int
) -> Iterator[Any]:
    from moot.core.events import decode, event_id, iso

    *opening, turn = pattern
    source = turn["runId"]
    start = UNTIL_MS - (of - first) * 1000
    for sequence, said in enumerate(opening):
        stamped = {**said, "timestamp": iso(start * 1000 + sequence)}
        yield decode(json.dumps(stamped).replace(source, name).encode())
    base = decode(json.dumps(turn).replace(source, name).encode())
    for index in range(1, count + 1):
        number, sequence = first + index - 1, len(opening) + index - 1
        speaker = SPEAKERS[number * 13 % len(SPEAKERS)]
        role = "user" if speaker.startswith("user") else "agent"
        at = start + index * 1000
        said = {
            "messageId": f"{name}:talk:1:{index}:{role}", "from": speaker, "ts": at, "role": role,
            "content": words.text(number), "turnIndex": index, "via": "bench",
            **({"speakerId": speaker} if role == "agent" else {}),
        }  # fmt: skip
        exchanged = ConversationExchanged(
            conversation_id=f"{name}:talk:1", turn_index=index, turn=said
        )
        yield msgspec.structs.replace(
            base, event_id=event_id(name, sequence), sequence=sequence, timestamp=iso(at * 1000),
            payload=exchanged, raw=None, causation_id=event_id(name, sequence - 1),
        )  # fmt: skip


async def _main() -> None:
    file, turns, long = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(await build(file, turns, long))


if __name__ == "__main__":
    uvloop.run(_main())
