"""Format log lines on stderr: readable ones, or JSON. They never hold content."""

import json
import logging
import sys
from datetime import UTC, datetime

#: fields that every record has; all others come from ``extra=``
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormatter(logging.Formatter):
    """Formats records as readable lines or as JSON."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        extra = {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._as_json:
            return _json_entry(record, moment, extra, trace)
        tail = "".join(f" {key}={value}" for key, value in extra.items())
        clock = moment.astimezone().strftime("%H:%M:%S")
        line = f"{clock} {record.levelname.lower():<7} {record.getMessage()}{tail}"
        return f"{line}\n{trace}" if trace else line


def _json_entry(
    record: logging.LogRecord, moment: datetime, extra: dict[str, object], trace: str
) -> str:
    entry: dict[str, object] = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
        **extra,
    }
    if trace:
        entry["trace"] = trace
    return json.dumps(entry, default=str, ensure_ascii=False)


def log_to_stderr(as_json: bool = False, level: int = logging.INFO) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(as_json))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # the HTTP client logs every address that it calls, with any secret in it
    for chatty in ("uvicorn", "uvicorn.error", "asyncio", "httpx2", "httpcore2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
