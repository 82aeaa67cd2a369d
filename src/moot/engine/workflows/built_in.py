"""Workflows that every tenant has without registering them.

Each is stored with the tenant's own at its first use, so that a later version changes no existing
run.
"""

import msgspec

from moot.core.state.conversation import THREAD

#: the id of its only node, the conversation gate
TALK = "talk"

_THREAD = {
    "id": THREAD,
    "name": "Thread",
    "version": "1.0",
    "description": "One conversation of people and agents, for as long as it takes.",
    "nodes": [
        {
            "id": TALK,
            "typeId": "core.conversationGate",
            "name": "Talk",
            "position": {"x": 0, "y": 0},
            "config": {},
            "inputs": {},
        }
    ],
    "edges": [],
    "triggers": [],
    "variables": [],
    "metadata": {},
    "settings": {},
}

#: a change of an agent's deployed versions
DEPLOYMENT = "moot.deployment"

_DEPLOYMENT = {
    "id": DEPLOYMENT,
    "name": "Deployment",
    "version": "1.0",
    "description": "What was changed about the versions of an agent.",
    "nodes": [
        {
            "id": "tell",
            "typeId": "moot.deployed",
            "name": "Tell",
            "position": {"x": 0, "y": 0},
            "config": {},
            "inputs": {"told": {"type": "variable", "variableName": "told"}},
        }
    ],
    "edges": [],
    "triggers": [],
    "variables": [{"name": "told", "type": "array", "required": True}],
    "metadata": {},
    "settings": {},
}

#: a summary of a part of a conversation for one reader
CATCH_UP = "moot.catch-up"

_CATCH_UP = {
    "id": CATCH_UP,
    "name": "Catch-up",
    "version": "1.0",
    "description": "A part of a conversation, summed up for one reader.",
    "nodes": [
        {
            "id": "sum-up",
            "typeId": "moot.catchUp",
            "name": "Sum up",
            "position": {"x": 0, "y": 0},
            "config": {},
            "inputs": {"told": {"type": "variable", "variableName": "told"}},
        }
    ],
    "edges": [],
    "triggers": [],
    "variables": [{"name": "told", "type": "object", "required": True}],
    "metadata": {},
    "settings": {},
}

#: workflows that only the host starts: no caller, other workflow or fork may
HOST_ONLY = frozenset({DEPLOYMENT, CATCH_UP})

BUILT_IN = {
    THREAD: msgspec.json.encode(_THREAD),
    DEPLOYMENT: msgspec.json.encode(_DEPLOYMENT),
    CATCH_UP: msgspec.json.encode(_CATCH_UP),
}
