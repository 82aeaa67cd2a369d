"""The workflow of a run that is one question to one agent."""

import msgspec

#: its id, the same for every agent
ASK = "moot.ask"
#: its one node
NODE = "ask"
#: its variables: the question, or a task, and the text of the answer
PROMPT, TASK, TEXT = "prompt", "task", "text"


def ask_definition(agent_id: str) -> bytes:
    """Return the definition for this agent. All share one id; a run pins its own by digest."""
    return msgspec.json.encode(
        {
            "id": ASK,
            "name": "Ask",
            "version": "1.0",
            "description": "One piece of work for one agent.",
            "nodes": [
                {
                    "id": NODE,
                    "typeId": "moot.agent",
                    "name": "Ask",
                    "position": {"x": 0, "y": 0},
                    "config": {"show": "variables", "into": TEXT},
                    "inputs": {},
                    "agent": {"agentId": agent_id},
                }
            ],
            "edges": [],
            "triggers": [],
            "variables": [_variable(PROMPT, "string"), _variable(TASK, "object")],
            "metadata": {},
            "settings": {},
        }
    )


def _variable(name: str, type_: str) -> dict[str, object]:
    return {"name": name, "type": type_, "required": False}
