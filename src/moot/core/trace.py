"""W3C trace context: which trace a run belongs to. It tells who caused what, and permits nothing.

A run has a span of its own, and so has each call it makes; their ids follow from names that are
unique, so that nothing has to be drawn or kept.
"""

import hashlib
import re

from msgspec import Struct

#: of version 00; a later one may say more behind it
TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
#: one member of a tracestate
MEMBER = re.compile(
    r"(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
MOST_MEMBERS = 32
LONGEST_STATE = 512

SAMPLED = "01"


class Trace(Struct, frozen=True):
    """A place in a trace: the span that came last, and what vendors pass along."""

    trace_id: str
    span_id: str
    flags: str = SAMPLED
    state: str = ""

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def read(traceparent: str | None, tracestate: str | None = None) -> Trace | None:
    """What a caller says; None when it says nothing, or nothing that can be read."""
    found = TRACEPARENT.fullmatch((traceparent or "").strip(" \t"))
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest is not None):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    sampled = f"{int(flags, 16) & 1:02x}"  # no other flag is known to version 00
    return Trace(trace_id, span_id, sampled, readable_state(tracestate or ""))


def readable_state(tracestate: str) -> str:
    """The list without its empty places; '' when anything in it is not well formed."""
    members = [member.strip(" \t") for member in tracestate.split(",")]
    members = [member for member in members if member]
    keys = {member.partition("=")[0] for member in members}
    if len(members) > MOST_MEMBERS or len(keys) < len(members):
        return ""
    if not all(MEMBER.fullmatch(member) for member in members):
        return ""
    joined = ",".join(members)
    return joined if len(joined) <= LONGEST_STATE else ""


def of_run(run_id: str, given: Trace | None) -> Trace:
    """The run's own span: in the trace it was given, else in one of its own."""
    span = _span("run", run_id)
    if given is None:
        return Trace(_hashed("trace", run_id)[:32], span)
    return Trace(given.trace_id, span, given.flags, given.state)


def within(trace: Trace, name: str) -> Trace:
    """The span of one call that is made for a run."""
    return Trace(trace.trace_id, _span("call", name), trace.flags, trace.state)


def _span(kind: str, name: str) -> str:
    return _hashed(kind, name)[:16]


def _hashed(kind: str, name: str) -> str:
    """Hex digits, of which the first sixteen are never all zero."""
    digest = hashlib.sha256(f"moot:{kind}:{name}".encode()).hexdigest()
    return digest if int(digest[:16], 16) else "1" * 64
