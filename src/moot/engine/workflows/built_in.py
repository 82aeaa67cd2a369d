"""Workflows that every tenant has without registering them.

Each is stored with the tenant's own at its first use, so that a later version changes no existing
run.
"""

from collections.abc import Mapping

import msgspec

from moot.core.state.conversation import THREAD

#: the id of the only node of a thread, the conversation gate
TALK = "talk"
#: a change of an agent's deployed versions
DEPLOYMENT = "moot.deployment"
#: a summary of a part of a conversation for one reader
CATCH_UP = "moot.catch-up"
#: one question to one agent; the id is the same for every agent
ASK = "moot.ask"
#: the one node of a question
NODE = "ask"
#: the variables of a question: the prompt, or a task, and the text of the answer
PROMPT, TASK, TEXT = "prompt", "task", "text"

#: workflows that only the host starts: no caller, other workflow or fork may
HOST_ONLY = frozenset({DEPLOYMENT, CATCH_UP})


def _definition(
    workflow_id: str, name: str, description: str, node: Mapping[str, object], *variables: object
) -> bytes:
    """Return the definition of a workflow with one node."""
    place = {"position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}
    definition = {
        "id": workflow_id,
        "name": name,
        "version": "1.0",
        "description": description,
        "nodes": [{"id": "", "typeId": "", "name": "", **place, **node}],
        "edges": [],
        "triggers": [],
        "variables": variables,
        "metadata": {},
        "settings": {},
    }
    return msgspec.json.encode(definition)


def _variable(name: str, type_: str, required: bool = False) -> dict[str, object]:
    return {"name": name, "type": type_, "required": required}


def ask_definition(agent_id: str) -> bytes:
    """Return the definition for this agent. All share one id; a run pins its own by digest."""
    node = {
        "id": NODE,
        "typeId": "moot.agent",
        "name": "Ask",
        "config": {"show": "variables", "into": TEXT},
        "agent": {"agentId": agent_id},
    }
    variables = _variable(PROMPT, "string"), _variable(TASK, "object")
    return _definition(ASK, "Ask", "One piece of work for one agent.", node, *variables)


_TOLD = {"told": {"type": "variable", "variableName": "told"}}

BUILT_IN = {
    THREAD: _definition(
        THREAD,
        "Thread",
        "One conversation of people and agents, for as long as it takes.",
        {"id": TALK, "typeId": "core.conversationGate", "name": "Talk"},
    ),
    DEPLOYMENT: _definition(
        DEPLOYMENT,
        "Deployment",
        "What was changed about the versions of an agent.",
        {"id": "tell", "typeId": "moot.deployed", "name": "Tell", "inputs": _TOLD},
        _variable("told", "array", required=True),
    ),
    CATCH_UP: _definition(
        CATCH_UP,
        "Catch-up",
        "A part of a conversation, summed up for one reader.",
        {"id": "sum-up", "typeId": "moot.catchUp", "name": "Sum up", "inputs": _TOLD},
        _variable("told", "object", required=True),
    ),
}
