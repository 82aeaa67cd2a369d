"""Verify a file: its pages, the hash chain of every log, and every definition.

Texts are read as bytes, because a flipped byte may have made them undecodable.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import apsw

from moot.store.hash_chain import (
    check_definition_digest,
    check_event_place,
    check_memory_event,
    hash_event,
)
from moot.store.protocol import Definition, IntegrityProblem
from moot.store.sqlite.statements import load_statements

SQL = load_statements("verify")


Rows = Iterable[tuple[Any, ...]]


class HeadRow(NamedTuple):
    """One row of the table ``heads``, its texts as bytes."""

    n: int
    tenant: bytes
    run_id: bytes
    next_sequence: int
    hash: bytes

    def problem(self, sequence: int, what: str) -> IntegrityProblem:
        return IntegrityProblem(_text(self.tenant), _text(self.run_id), sequence, what)


def verify_file(db: apsw.Connection) -> list[IntegrityProblem]:
    """Return what is wrong with the file; for each log only the first problem."""
    problems = list(_report_read_errors(_check_pages(db)))
    db.execute("BEGIN")
    try:
        for check in (_check_logs, _check_lost_logs, _check_definitions, _check_memory):
            problems += _report_read_errors(check(db))
    finally:
        db.execute("ROLLBACK")
    return problems


def verify_log(db: apsw.Connection, tenant: str, run_id: str) -> list[IntegrityProblem]:
    """Return the first problem of one log, or []."""
    db.execute("BEGIN")
    try:
        problems: list[IntegrityProblem] = []
        for head in list(map(HeadRow._make, db.execute(SQL["ONE_HEAD"], (run_id, tenant)))):
            events = db.execute(SQL["ITS_EVENTS"], (head.n,))
            problems += _report_read_errors(_check_log(head, events))
        return problems
    finally:
        db.execute("ROLLBACK")


def _report_read_errors(problems: Iterator[IntegrityProblem]) -> Iterator[IntegrityProblem]:
    """Report a page that cannot be read as one more problem."""
    try:
        yield from problems
    except apsw.Error as failure:
        yield _file_problem(f"The file cannot be read to its end: {failure}.")


def _check_pages(db: apsw.Connection) -> Iterator[IntegrityProblem]:
    for (complaint,) in db.execute("PRAGMA integrity_check"):
        if complaint != "ok":
            yield _file_problem(f"SQLite complains: {complaint}.")


def _check_logs(db: apsw.Connection) -> Iterator[IntegrityProblem]:
    """Read heads and events side by side, both in the order of their log's number."""
    logs = groupby(db.execute(SQL["EVENTS"]), key=itemgetter(0))
    number, rows = next(logs, (None, ()))
    expected = 1
    for head in map(HeadRow._make, db.execute(SQL["HEADS"])):
        while number is not None and number < head.n:
            yield _file_problem(f"There are events of log number {number}, which has no head.")
            number, rows = next(logs, (None, ()))
        if head.n != expected:
            yield _file_problem(f"Log number {expected} is missing whole.")
        expected = head.n + 1
        if number == head.n:
            yield from _check_log(head, rows)
            number, rows = next(logs, (None, ()))
        else:
            yield from _check_log(head, ())
    while number is not None:
        yield _file_problem(f"There are events of log number {number}, which has no head.")
        number, rows = next(logs, (None, ()))


def _check_log(head: HeadRow, rows: Rows) -> Iterator[IntegrityProblem]:
    scope = b"%b\0%b\0" % (head.tenant, head.run_id)
    expected, last = 0, b""
    for _, sequence, stored, body in rows:
        if sequence != expected:
            yield head.problem(expected, f"Number {sequence} stands scope {expected} should.")
            return
        last = hash_event(last, scope, sequence, body)
        if stored != last:
            yield head.problem(sequence, "The event does not match its hash.")
            return
        if what := check_event_place(body, _text(head.run_id), sequence):
            yield head.problem(sequence, what)
            return
        expected += 1
    if expected != head.next_sequence:
        what = f"The log has {expected} events, its head says {head.next_sequence}."
        yield head.problem(-1, what)
    elif last != head.hash:
        yield head.problem(-1, "The log's head does not match its last event.")


def _check_lost_logs(db: apsw.Connection) -> Iterator[IntegrityProblem]:
    for tenant, run_id in db.execute(SQL["LOST_LOGS"]):
        what = "The run is listed, but its log is gone."
        yield IntegrityProblem(_text(tenant), _text(run_id), -1, what)


def _check_definitions(db: apsw.Connection) -> Iterator[IntegrityProblem]:
    for tenant, workflow_id, digest, body in db.execute(SQL["DEFINITIONS"]):
        definition = Definition(
            tenant=_text(tenant), workflow_id=_text(workflow_id), version="",
            digest=_text(digest), body=body, created_at=0,
        )  # fmt: skip
        if what := check_definition_digest(definition):
            yield IntegrityProblem(definition.tenant, "", -1, what)


def _check_memory(db: apsw.Connection) -> Iterator[IntegrityProblem]:
    for tenant, run_id, sequence, memory_id, body in db.execute(SQL["MEMORY"]):
        if what := check_memory_event(body, _text(memory_id)):
            yield IntegrityProblem(_text(tenant), _text(run_id), sequence, what)


def _file_problem(what: str) -> IntegrityProblem:
    return IntegrityProblem(tenant="", run_id="", sequence=-1, what=what)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
