"""Other hosts by name: ids of workflows that are there, and what a run says of its parent here.

What a caller says of a parent is kept and shown. It gives no right and reaches no other run.
"""

import re
from urllib.parse import urlsplit

from msgspec import Struct

#: a workflow there is NAME/ID; no workflow here can be called so, for an id holds no slash
SLASH = "/"
NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
WORKFLOW = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
LONGEST_URL = 512

HEADER = "moot-parent"
WELL_KNOWN = "/.well-known/openwop"
CAUSES = ("core.dispatch", "core.subWorkflow")

RUN_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
EVENT_ID = re.compile(r"[A-Za-z0-9._:~-]{1,128}")
#: what may stand between quotes
HOST_ID = re.compile(r"[\x21\x23-\x3a\x3c-\x5b\x5d-\x7e]{1,256}")
PART = re.compile(r'\s*([a-z]+)=(?:"([^"\\]*)"|([^";,\s]*))\s*')
MOST_PARTS = 8
LARGEST = 10**6


def parted(workflow_id: str) -> tuple[str, str] | None:
    """(peer, its workflow) of an id that names one on another host; None for one that is here."""
    name, slash, workflow = workflow_id.partition(SLASH)
    if not slash or not NAME.fullmatch(name) or not WORKFLOW.fullmatch(workflow):
        return None
    return name, workflow


def is_away(workflow_id: str) -> bool:
    """Whether the id is meant for another host, well formed or not."""
    return SLASH in workflow_id


def is_address(url: str) -> bool:
    """Whether this is the address of a host: no user, no query, nothing a request would add."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    rest = parts.query or parts.fragment or parts.username or parts.password
    whole = parts.scheme in ("http", "https") and parts.hostname and port != 0
    return bool(whole) and not rest and not set(url) & set('";\\')


class Origin(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The run on another host that a run was started by, as its caller says."""

    run_id: str
    host_id: str
    well_known_url: str
    cause: str
    #: the event there that caused it
    event_id: str | None = None
    #: how deep in a tree of runs this one is, and how many it may lead to
    depth: int = 0
    tree: int | None = None


def written(origin: Origin) -> str:
    """The header's value."""
    parts = [origin.run_id, f'host="{origin.host_id}"', f'url="{origin.well_known_url}"']
    parts.append(f"cause={origin.cause}")
    if origin.event_id is not None:
        parts.append(f'event="{origin.event_id}"')
    if origin.depth:
        parts.append(f"depth={origin.depth}")
    if origin.tree is not None:
        parts.append(f"tree={origin.tree}")
    return "; ".join(parts)


def read(header: str | None) -> Origin | None:
    """What the header says; None when it is not there, or any of it cannot be read."""
    run_id, *parts = (header or "").split(";")
    run_id = run_id.strip(" ")
    if not RUN_ID.fullmatch(run_id) or len(parts) > MOST_PARTS:
        return None
    said: dict[str, str] = {}
    for part in parts:
        found = PART.fullmatch(part)
        if found is None or found[1] in said:
            return None
        said[found[1]] = found[2] if found[2] is not None else found[3]
    return _checked(run_id, said)


def _checked(run_id: str, said: dict[str, str]) -> Origin | None:
    host_id, url, cause = said.get("host", ""), said.get("url", ""), said.get("cause", "")
    event = said.get("event")
    depth, tree = _whole(said.get("depth", "0")), _whole(said.get("tree", str(LARGEST)))
    known = HOST_ID.fullmatch(host_id) and is_address(url) and cause in CAUSES
    if not known or depth is None or tree is None:
        return None
    if event is not None and not EVENT_ID.fullmatch(event):
        return None
    return Origin(
        run_id=run_id,
        host_id=host_id,
        well_known_url=url,
        cause=cause,
        event_id=event,
        depth=depth,
        tree=tree if "tree" in said else None,
    )


def _whole(text: str) -> int | None:
    fits = text.isascii() and text.isdigit() and len(text) < 8
    return int(text) if fits and int(text) <= LARGEST else None
