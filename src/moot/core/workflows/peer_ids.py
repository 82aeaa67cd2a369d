"""Ids of workflows on other hosts, and the header that names a parent run.

The host records and displays the parent in a header. It grants no right and reaches no other run.
"""

import re
from urllib.parse import urlsplit

from moot.core.payloads.runs import PeerOrigin

#: a workflow on a peer is NAME/ID; ids of this host contain no slash
SLASH = "/"
NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
WORKFLOW = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
LONGEST_URL = 512

HEADER = "moot-parent"
WELL_KNOWN = "/.well-known/openwop"
CAUSES = ("core.dispatch", "core.subWorkflow")

RUN_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
EVENT_ID = re.compile(r"[A-Za-z0-9._:~-]{1,128}")
#: characters that may appear between quotes
HOST_ID = re.compile(r"[\x21\x23-\x3a\x3c-\x5b\x5d-\x7e]{1,256}")
PART = re.compile(r'\s*([a-z]+)=(?:"([^"\\]*)"|([^";,\s]*))\s*')
MOST_PARTS = 8
LARGEST = 10**6


def split_peer_id(workflow_id: str) -> tuple[str, str] | None:
    """Return (peer, workflow id) of a workflow on another host; None for one of this host."""
    name, slash, workflow = workflow_id.partition(SLASH)
    if not slash or not NAME.fullmatch(name) or not WORKFLOW.fullmatch(workflow):
        return None
    return name, workflow


def is_peer_id(workflow_id: str) -> bool:
    """Return whether the id belongs to another host, well formed or not."""
    return SLASH in workflow_id


def is_host_url(url: str) -> bool:
    """Return whether this is a host's address, without user, query or fragment."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    rest = parts.query or parts.fragment or parts.username or parts.password
    complete = parts.scheme in ("http", "https") and parts.hostname and port != 0
    return bool(complete) and not rest and not set(url) & set('";\\')


def format_origin(origin: PeerOrigin) -> str:
    """Return the header's value."""
    parts = [origin.run_id, f'host="{origin.host_id}"', f'url="{origin.well_known_url}"']
    parts.append(f"cause={origin.cause}")
    if origin.event_id is not None:
        parts.append(f'event="{origin.event_id}"')
    if origin.depth:
        parts.append(f"depth={origin.depth}")
    if origin.tree is not None:
        parts.append(f"tree={origin.tree}")
    return "; ".join(parts)


def parse_origin(header: str | None) -> PeerOrigin | None:
    """Return the origin in the header; None when it is missing or malformed."""
    if not header:
        return None
    run_id, *parts = header.split(";")
    run_id = run_id.strip(" ")
    if not RUN_ID.fullmatch(run_id) or len(parts) > MOST_PARTS:
        return None
    fields: dict[str, str] = {}
    for part in parts:
        match = PART.fullmatch(part)
        if match is None or match[1] in fields:
            return None
        fields[match[1]] = match[2] if match[2] is not None else match[3]
    return _origin_from_fields(run_id, fields)


def _origin_from_fields(run_id: str, fields: dict[str, str]) -> PeerOrigin | None:
    host_id, url, cause = fields.get("host", ""), fields.get("url", ""), fields.get("cause", "")
    event = fields.get("event")
    depth, tree = (
        _parse_whole(fields.get("depth", "0")),
        _parse_whole(fields.get("tree", str(LARGEST))),
    )
    valid = HOST_ID.fullmatch(host_id) and is_host_url(url) and cause in CAUSES
    if not valid or depth is None or tree is None:
        return None
    if event is not None and not EVENT_ID.fullmatch(event):
        return None
    return PeerOrigin(
        run_id=run_id,
        host_id=host_id,
        well_known_url=url,
        cause=cause,
        event_id=event,
        depth=depth,
        tree=tree if "tree" in fields else None,
    )


def _parse_whole(text: str) -> int | None:
    valid = text.isascii() and text.isdigit() and len(text) < 8
    return int(text) if valid and int(text) <= LARGEST else None
