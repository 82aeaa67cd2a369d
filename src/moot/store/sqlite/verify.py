"""Checks a whole file row by row: the pages, every log against its chain, every definition.

Texts are read as bytes, because a flipped byte may have made them undecodable.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import apsw

from moot.store.hash_chain import altered, link, misplaced, unattested
from moot.store.protocol import Definition, Problem

HEADS = """
SELECT n, CAST(tenant AS BLOB), CAST(run_id AS BLOB), next_sequence, CAST(hash AS BLOB)
FROM heads ORDER BY n
"""
EVENTS = """
SELECT n, sequence, CAST(hash AS BLOB), CAST(body AS BLOB) FROM events ORDER BY n, sequence
"""
ONE_HEAD = """
SELECT n, CAST(tenant AS BLOB), CAST(run_id AS BLOB), next_sequence, CAST(hash AS BLOB)
FROM heads WHERE run_id = ? AND tenant = ?
"""
ITS_EVENTS = """
SELECT n, sequence, CAST(hash AS BLOB), CAST(body AS BLOB) FROM events WHERE n = ? ORDER BY sequence
"""
LOST_LOGS = """
SELECT CAST(tenant AS BLOB), CAST(run_id AS BLOB) FROM runs
WHERE NOT EXISTS (SELECT 1 FROM heads WHERE heads.n = runs.n)
"""
DEFINITIONS = """
SELECT CAST(tenant AS BLOB), CAST(workflow_id AS BLOB), CAST(digest AS BLOB), CAST(body AS BLOB)
FROM definitions ORDER BY id
"""

#: each write beside the event that should tell of it
MEMORY = """
SELECT CAST(m.tenant AS BLOB), CAST(m.run_id AS BLOB), m.sequence, CAST(m.memory_id AS BLOB),
       CAST(e.body AS BLOB)
FROM memory AS m
LEFT JOIN heads AS h ON h.run_id = m.run_id AND h.tenant = m.tenant
LEFT JOIN events AS e ON e.n = h.n AND e.sequence = m.sequence
WHERE m.run_id <> '' ORDER BY m.n
"""

Rows = Iterable[tuple[Any, ...]]


class Head(NamedTuple):
    n: int
    tenant: bytes
    run_id: bytes
    next_sequence: int
    hash: bytes

    def problem(self, sequence: int, what: str) -> Problem:
        return Problem(
            tenant=_text(self.tenant), run_id=_text(self.run_id), sequence=sequence, what=what
        )


def verify(db: apsw.Connection) -> list[Problem]:
    """What is wrong with the file; of each log the first thing only."""
    problems = list(_guarded(_pages(db)))
    db.execute("BEGIN")
    try:
        for check in (_logs, _lost_logs, _definitions, _memory):
            problems += _guarded(check(db))
    finally:
        db.execute("ROLLBACK")
    return problems


def verify_log(db: apsw.Connection, tenant: str, run_id: str) -> list[Problem]:
    """What is wrong with one log: the first thing only."""
    db.execute("BEGIN")
    try:
        heads = map(Head._make, db.execute(ONE_HEAD, (run_id, tenant)))
        return [
            problem
            for head in list(heads)
            for problem in _guarded(_log(head, db.execute(ITS_EVENTS, (head.n,))))
        ]
    finally:
        db.execute("ROLLBACK")


def _guarded(found: Iterator[Problem]) -> Iterator[Problem]:
    """A page can be so broken that reading stops; that is a finding, too."""
    try:
        yield from found
    except apsw.Error as failure:
        yield _of_the_file(f"The file cannot be read to its end: {failure}.")


def _pages(db: apsw.Connection) -> Iterator[Problem]:
    for (complaint,) in db.execute("PRAGMA integrity_check"):
        if complaint != "ok":
            yield _of_the_file(f"SQLite complains: {complaint}.")


def _logs(db: apsw.Connection) -> Iterator[Problem]:
    """Heads and events side by side, both in the order of their log's number."""
    logs = groupby(db.execute(EVENTS), key=itemgetter(0))
    number, rows = next(logs, (None, ()))
    expected = 1
    for head in map(Head._make, db.execute(HEADS)):
        while number is not None and number < head.n:
            yield _of_the_file(f"There are events of log number {number}, which has no head.")
            number, rows = next(logs, (None, ()))
        if head.n != expected:
            yield _of_the_file(f"Log number {expected} is missing whole.")
        expected = head.n + 1
        if number == head.n:
            yield from _log(head, rows)
            number, rows = next(logs, (None, ()))
        else:
            yield from _log(head, ())
    while number is not None:
        yield _of_the_file(f"There are events of log number {number}, which has no head.")
        number, rows = next(logs, (None, ()))


def _log(head: Head, rows: Rows) -> Iterator[Problem]:
    where = b"%b\0%b\0" % (head.tenant, head.run_id)
    expected, last = 0, b""
    for _, sequence, stored, body in rows:
        if sequence != expected:
            yield head.problem(expected, f"Number {sequence} stands where {expected} should.")
            return
        last = link(last, where, sequence, body)
        if stored != last:
            yield head.problem(sequence, "The event does not match its hash.")
            return
        if what := misplaced(body, _text(head.run_id), sequence):
            yield head.problem(sequence, what)
            return
        expected += 1
    if expected != head.next_sequence:
        what = f"The log has {expected} events, its head says {head.next_sequence}."
        yield head.problem(-1, what)
    elif last != head.hash:
        yield head.problem(-1, "The log's head does not match its last event.")


def _lost_logs(db: apsw.Connection) -> Iterator[Problem]:
    for tenant, run_id in db.execute(LOST_LOGS):
        what = "The run is listed, but its log is gone."
        yield Problem(tenant=_text(tenant), run_id=_text(run_id), sequence=-1, what=what)


def _definitions(db: apsw.Connection) -> Iterator[Problem]:
    for tenant, workflow_id, digest, body in db.execute(DEFINITIONS):
        definition = Definition(
            tenant=_text(tenant),
            workflow_id=_text(workflow_id),
            version="",
            digest=_text(digest),
            body=body,
            created_at=0,
        )
        if what := altered(definition):
            yield Problem(tenant=definition.tenant, run_id="", sequence=-1, what=what)


def _memory(db: apsw.Connection) -> Iterator[Problem]:
    for tenant, run_id, sequence, memory_id, body in db.execute(MEMORY):
        if what := unattested(body, _text(memory_id)):
            yield Problem(tenant=_text(tenant), run_id=_text(run_id), sequence=sequence, what=what)


def _of_the_file(what: str) -> Problem:
    return Problem(tenant="", run_id="", sequence=-1, what=what)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
