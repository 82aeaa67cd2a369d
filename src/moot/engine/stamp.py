"""A new event becomes a fact of a run: the server writes id, time, sequence and cause."""

from msgspec import UNSET

from moot.core.events import Event, NewEvent, event_id, iso
from moot.core.state.initiation import id_at
from moot.core.state.run import Run


def stamped(run: Run, new: NewEvent, micros: int) -> Event:
    run_id, sequence, cause = run.run_id, run.next_sequence, new.cause
    if cause is None:
        cause = sequence - 1
    if isinstance(cause, int):
        cause = id_at(run, cause) if 0 <= cause < sequence else ""
    version = run.engine_version or str(new.payload.get("engineVersion", ""))
    return Event(
        event_id=new.event_id or event_id(run_id, sequence),
        run_id=run_id,
        sequence=sequence,
        type=new.type,
        timestamp=iso(micros),
        payload=new.payload,
        schema_version=1,
        engine_version=version,
        node_id=new.node_id if new.node_id is not None else UNSET,
        causation_id=cause or UNSET,
        hints=new.hints if new.hints is not None else UNSET,
    )
