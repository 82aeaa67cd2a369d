"""Tags and path parameters of the OpenAPI document."""

import re

#: Tag -> (description, its guide in docs/).
TAGS: dict[str, tuple[str, str]] = {
    "Runs": ("Start, read, pause, resume and cancel runs, and follow their events.", "sdk"),
    "Replay": ("Replay, fork, compare and verify runs.", "forks"),
    "Inbox": ("Answer the questions that wait for a person.", "workflows"),
    "Workflows": ("Register, check and read workflows.", "workflows"),
    "Threads": ("Conversations of people, agents and programs.", "threads"),
    "Councils": ("Ask a question of several agents and people.", "councils"),
    "Agent Bridge": ("Threads in the form of Agent Bridge.", "joining"),
    "Search": ("Search threads, mark them as read, and catch up.", "search"),
    "Agents": ("Agents, their versions, deployments and tools.", "agents"),
    "Roster": ("Standing agents with their own work and budgets.", "standing-agents"),
    "Schedules": ("Start runs at times.", "schedules"),
    "Queues": ("Start runs from queues of items.", "triggers"),
    "Subscriptions": ("Start runs from signed webhooks and queues.", "triggers"),
    "Deliveries": ("The deliveries of all triggers, and their dead letters.", "triggers"),
    "Webhooks": ("Tell other programs about events.", "webhooks"),
    "Memory": ("Read and erase the memory of agents.", "memory"),
    "Keys": ("Create, list and revoke API keys.", "settings"),
    "Host": ("Discovery, health, metrics and this document.", "settings"),
}

#: First noun of a path -> tag, for routes that do not name one.
TAG_OF_NOUN = {
    "runs": "Runs",
    "interrupts": "Inbox",
    "inbox": "Inbox",
    "workflows": "Workflows",
    "threads": "Threads",
    "councils": "Councils",
    "search": "Search",
    "agents": "Agents",
    "tools": "Agents",
    "roster": "Roster",
    "schedules": "Schedules",
    "queues": "Queues",
    "trigger-subscriptions": "Subscriptions",
    "ingest": "Subscriptions",
    "deliveries": "Deliveries",
    "webhooks": "Webhooks",
    "memory": "Memory",
    "keys": "Keys",
}

#: Path parameter -> description.
PATH_PARAMETERS = {
    "agent_id": "The id of an agent, such as `host:ada`.",
    "artifact_id": "The id of an artifact.",
    "catch_up_id": "The id of a catch-up.",
    "delivery_id": "The id of a delivery.",
    "guide": "The name of a guide, such as `workflows`.",
    "item_id": "The id of an item.",
    "iteration": "The number of a turn, from 1.",
    "key_id": "The id of a key, not its secret.",
    "name": "The name of an agent.",
    "node_id": "The id of a node.",
    "queue": "The name of a queue.",
    "roster_id": "The id of a standing agent.",
    "run_id": "The id of a run.",
    "schedule_id": "The id of a schedule.",
    "seat": "The id of a seat.",
    "speech_id": "The id of a speech.",
    "subscription_id": "The id of a subscription.",
    "thread_id": "The id of a thread.",
    "token": "The token of a link.",
    "webhook_id": "The id of a webhook.",
    "workflow_id": "The id of a workflow.",
}


def tag_from_path(path: str) -> str:
    nouns = re.findall(r"[a-z-]+", re.sub(r"\{\w+\}|^/v1/host/moot|^/v1", "", path))
    return TAG_OF_NOUN.get(nouns[0] if nouns else "", "Host")
