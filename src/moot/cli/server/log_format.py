"""Log lines on stderr: readable ones for people, JSON for machines. Content never goes in."""

import json
import logging
import sys
from datetime import UTC, datetime

#: what every record has; all else was given with ``extra=``
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """One formatter, two forms."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        given = {key: value for key, value in vars(record).items() if key not in _USUAL}
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._as_json:
            return _machine(record, moment, given, trace)
        tail = "".join(f" {key}={value}" for key, value in given.items())
        clock = moment.astimezone().strftime("%H:%M:%S")
        line = f"{clock} {record.levelname.lower():<7} {record.getMessage()}{tail}"
        return f"{line}\n{trace}" if trace else line


def _machine(
    record: logging.LogRecord, moment: datetime, given: dict[str, object], trace: str
) -> str:
    entry: dict[str, object] = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
        **given,
    }
    if trace:
        entry["trace"] = trace
    return json.dumps(entry, default=str, ensure_ascii=False)


def to_stderr(as_json: bool = False, level: int = logging.INFO) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(as_json))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # the HTTP client names every address it calls, with whatever secret stands in it
    for chatty in ("uvicorn", "uvicorn.error", "asyncio", "httpx2", "httpcore2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
