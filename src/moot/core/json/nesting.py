"""How deep JSON may be nested: what is taken in must be readable for ever, on any stack."""

DEEPEST = 64


def too_deep(body: bytes) -> bool:
    """Whether the JSON text is nested deeper than DEEPEST. It need not be well formed."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
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
            if depth > DEEPEST:
                return True
        elif byte in b"]}":
            depth -= 1
    return False
