"""W3C trace context of runs and calls. A trace grants no rights.

Each run and each of its calls has a span. Span ids are derived from unique names, so they need no
random numbers and no storage.
"""

import hashlib
import re

from msgspec import Struct

#: version 00; a later version may append fields
TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
#: one member of a tracestate
STATE_MEMBER = re.compile(
    r"(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
MOST_MEMBERS = 32
LONGEST_STATE = 512

SAMPLED = "01"


class Trace(Struct, frozen=True):
    """A place in a trace: the last span, and the state of vendors."""

    trace_id: str
    span_id: str
    flags: str = SAMPLED
    state: str = ""

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def parse_trace(traceparent: str | None, tracestate: str | None = None) -> Trace | None:
    """Return the caller's trace; None when there is none or it is malformed."""
    if not traceparent:
        return None
    match = TRACEPARENT.fullmatch(traceparent.strip(" \t"))
    if match is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    if version == "ff" or (version == "00" and rest is not None):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    sampled = f"{int(flags, 16) & 1:02x}"  # version 00 has no other flags
    return Trace(trace_id, span_id, sampled, parse_tracestate(tracestate or ""))


def parse_tracestate(tracestate: str) -> str:
    """Return the list without empty members; '' when any member is malformed."""
    members = [member.strip(" \t") for member in tracestate.split(",")]
    members = [member for member in members if member]
    keys = {member.partition("=")[0] for member in members}
    if len(members) > MOST_MEMBERS or len(keys) < len(members):
        return ""
    if not all(STATE_MEMBER.fullmatch(member) for member in members):
        return ""
    joined = ",".join(members)
    return joined if len(joined) <= LONGEST_STATE else ""


def run_trace(run_id: str, caller: Trace | None) -> Trace:
    """Return the run's span, in the caller's trace if there is one."""
    span = _span_id("run", run_id)
    if caller is None:
        return Trace(_hash_hex("trace", run_id)[:32], span)
    return Trace(caller.trace_id, span, caller.flags, caller.state)


def call_trace(trace: Trace, name: str) -> Trace:
    """Return the span of one call of a run."""
    return Trace(trace.trace_id, _span_id("call", name), trace.flags, trace.state)


def _span_id(kind: str, name: str) -> str:
    return _hash_hex(kind, name)[:16]


def _hash_hex(kind: str, name: str) -> str:
    """Return 64 hex digits; the first sixteen are never all zero."""
    digest = hashlib.sha256(f"moot:{kind}:{name}".encode()).hexdigest()
    return digest if int(digest[:16], 16) else "1" * 64
