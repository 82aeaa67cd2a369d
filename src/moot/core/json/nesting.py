"""Limit the nesting of JSON, so that every reader's stack is deep enough."""

MAX_DEPTH = 64


def is_too_deep(body: bytes) -> bool:
    """Return whether a JSON text is nested deeper than MAX_DEPTH. It may be malformed."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    quoted = escaped = False
    for byte in body:
        if escaped:
            escaped = False
        elif quoted:
            escaped = byte == 0x5C
            quoted = byte != 0x22
        elif byte == 0x22:
            quoted = True
        elif byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif byte in b"]}":
            depth -= 1
    return False
