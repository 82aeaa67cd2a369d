"""Families of the protocol that this host does not offer: refused by name, not as a wrong path.

The protocol wants 501 for these; for all others that are missing, a plain 404 says the same.
"""

import re

from moot.core.errors import NotProvided

#: path -> the capability that would bring it
FAMILIES = {
    r"/v1/runs/[^/]+/annotations": "feedback",
    r"/v1/prompts([/:].*)?": "prompts",
    r"/v1/content(/.*)?": "content",
    r"/v1/host/workspace/files(/.*)?": "workspaceFiles",
}


def refusal(path: str) -> NotProvided | None:
    """Why nothing answers here, when that is for lack of a capability."""
    for pattern, capability in FAMILIES.items():
        if re.fullmatch(pattern, path):
            return NotProvided(
                f"This host does not offer {capability}; see /.well-known/openwop.",
                capability=capability,
            )
    return None
