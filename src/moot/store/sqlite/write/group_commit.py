"""The one thread that writes. Everything queued while a commit is running shares the next one.

What was said is indexed in between, when there is enough of it or nothing else is to be done.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import apsw
import msgspec

from moot.core.errors import StorageFailed, Unavailable
from moot.store.protocol import Batch
from moot.store.sqlite.write.group_rows import Group, ReceiptKey, receipt_key
from moot.store.sqlite.write.heads import Heads
from moot.store.sqlite.write.records import Standing
from moot.store.sqlite.write.search_index import CHUNK, Indexer
from moot.store.sqlite.write.statements import TAKEN_RECEIPTS
from moot.store.sqlite.write.transaction import transaction

T = TypeVar("T")

#: more than this in one transaction only makes the first of them wait
GROUP_LIMIT = 2000
CACHED_HEADS = 10_000
#: how often the loop goes round again for who has more to write: it gets ready, then it writes
MOST_ROUNDS = 2
#: seconds without anything to write, after which what waits is indexed
IDLE_S = 0.5
#: pieces that are still indexed before the file is closed; the rest waits in it
MOST_AT_CLOSE = 16

_encode = msgspec.json.Encoder().encode


class Write:
    """A batch and the caller who waits for it."""

    __slots__ = ("batch", "done", "failure")

    def __init__(self, batch: Batch, done: asyncio.Future[None]) -> None:
        self.batch = batch
        self.done = done
        self.failure: Exception | None = None


class Call:
    """A function to run between two groups, alone with the connection."""

    __slots__ = ("done", "failure", "result", "work")

    def __init__(
        self, work: Callable[[apsw.Connection, Heads], Any], done: asyncio.Future[Any]
    ) -> None:
        self.work = work
        self.done = done
        self.result: Any = None
        self.failure: Exception | None = None


class Writer:
    """Alone with the only write connection. A failed commit fails its callers, never the thread."""

    def __init__(
        self, db: apsw.Connection, *, queue_limit: int, cached_heads: int = CACHED_HEADS
    ) -> None:
        self._db = db
        self._heads = Heads(db, cached_heads)
        self._indexer = Indexer(db)
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[list[Write] | Call | None] = queue.SimpleQueue()
        self._queue_limit = queue_limit
        self._gathered: list[Write] = []
        #: writes whose callers have not been told yet; the loop counts them
        self._waiting = 0
        self._held: list[list[Write] | Call | None] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="moot-writer", daemon=True)
        self._thread.start()

    async def commit(self, batch: Batch) -> None:
        if self._waiting >= self._queue_limit:
            raise Unavailable("The disk cannot keep up; try again shortly.", retry_after=1)
        self._refuse_closed()
        done = self._loop.create_future()
        if not self._gathered:
            self._loop.call_soon(self._go_round)
        self._gathered.append(Write(batch, done))
        self._waiting += 1
        await done

    def _go_round(self, left: int = MOST_ROUNDS, before: int | None = None) -> None:
        """Once the loop has gone round, what was gathered is handed over. Where somebody has more
        to write in a moment it goes round again, until something has come."""
        count = len(self._gathered)
        came = before is not None and count > before
        if left and not came and any(write.batch.more for write in self._gathered):
            self._loop.call_soon(self._go_round, left - 1, count)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        """All that was gathered, in one piece: a thread that is woken for each batch in turn
        fights the loop for the interpreter, and commits them in smaller groups."""
        for start in range(0, len(self._gathered), GROUP_LIMIT):
            self._queue.put(self._gathered[start : start + GROUP_LIMIT])
        self._gathered.clear()

    async def catch_up(self) -> None:
        """Until everything that is committed by now is in the index, or the disk refuses."""
        for _ in range(-(-self._indexer.waiting // CHUNK)):
            if not await self.call(lambda db, heads: self._index()):
                return

    async def index_anew(self) -> None:
        """After all that was indexed has been thrown away and noted anew."""
        await self.call(lambda db, heads: self._indexer.look())
        await self.catch_up()

    async def call(self, work: Callable[[apsw.Connection, Heads], T]) -> T:
        """Runs ``work`` on the writer thread, after what was queued before it."""
        self._refuse_closed()
        self._hand_over()
        done: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(Call(work, done))
        return await done

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Unavailable("The store is closed.")

    async def aclose(self) -> None:
        """Everything queued is written first. Safe to call twice."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _settle(self, jobs: list[Write] | list[Call]) -> None:
        """On the loop again."""
        for job in jobs:
            self._waiting -= isinstance(job, Write)
            if job.done.done():  # the caller gave up waiting
                continue
            if job.failure is not None:
                job.done.set_exception(job.failure)
            else:
                job.done.set_result(job.result if isinstance(job, Call) else None)

    # the writer thread

    def _run(self) -> None:
        while (job := self._next()) is not None:
            if isinstance(job, Call):
                self._perform(job)
                done: list[Write] | list[Call] = [job]
            else:
                self._commit(job)
                done = job
            with suppress(RuntimeError):  # the loop was closed under us: nobody waits any more
                self._loop.call_soon_threadsafe(self._settle, done)
            if self._indexer.waiting >= CHUNK:
                self._index()
        for _ in range(MOST_AT_CLOSE):
            if not self._indexer.waiting or not self._index():
                break

    def _next(self) -> list[Write] | Call | None:
        group = self._held.pop() if self._held else self._take()
        while isinstance(group, list):
            try:
                more = self._queue.get_nowait()
            except queue.Empty:
                break
            if not isinstance(more, list) or len(group) + len(more) > GROUP_LIMIT:
                self._held.append(more)
                break
            group += more
        return group

    def _take(self) -> list[Write] | Call | None:
        """The next job; while there is none, the index catches up."""
        while waiting := self._indexer.waiting:
            with suppress(queue.Empty):
                return self._queue.get(timeout=0 if waiting >= CHUNK else IDLE_S)
            if not self._index():
                break
        return self._queue.get()

    def _index(self) -> bool:
        """False when the disk refuses; it is tried again after the next job."""
        try:
            self._indexer.step()
        except apsw.Error:
            return False
        return True

    def _perform(self, call: Call) -> None:
        try:
            call.result = call.work(self._db, self._heads)
        except apsw.Error as failure:
            call.failure = _refusal(failure)
        except Exception as failure:
            call.failure = failure

    def _commit(self, writes: list[Write]) -> None:
        last_number = self._heads.last_number
        group = Group(self._heads, Standing(self._db))
        try:
            self._fill(group, writes)
        except Exception as failure:
            self._heads.forget(group.touched)
            self._heads.last_number = last_number
            self._fail(writes, failure)
        self._heads.trim()

    def _fill(self, group: Group, writes: list[Write]) -> None:
        self._heads.load(append.run_id for write in writes for append in write.batch.appends)
        group.taken |= self._taken_receipts(writes)
        for write in writes:
            write.failure = group.add(write.batch)
        if any(write.failure is None for write in writes):
            with transaction(self._db):
                group.write(self._db)
            self._indexer.waiting += group.texts

    def _fail(self, writes: list[Write], failure: Exception) -> None:
        if _is_of_the_disk(failure):
            for write in writes:
                write.failure = _refusal(failure)
        elif len(writes) == 1:
            writes[0].failure = failure
        else:  # one of them cannot be stored at all; the others must not suffer for it
            for write in writes:
                self._commit([write])

    def _taken_receipts(self, writes: list[Write]) -> set[ReceiptKey]:
        receipts = [write.batch.receipt for write in writes if write.batch.receipt is not None]
        if not receipts:
            return set()
        asked = _encode([receipt_key(receipt) for receipt in receipts]).decode()
        return {(row[0], row[1], row[2]) for row in self._db.execute(TAKEN_RECEIPTS, (asked,))}


def _is_of_the_disk(failure: Exception) -> bool:
    ours = (apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError)
    return isinstance(failure, apsw.Error) and not isinstance(failure, ours)


def _refusal(failure: Exception) -> StorageFailed:
    refusal = StorageFailed(f"The disk refused the write ({failure}); nothing of it was kept.")
    refusal.__cause__ = failure
    return refusal
