"""Refusals of what wakes standing agents: rosters, schedules, subscriptions, deliveries."""

from moot.core.errors import Conflict


class Overtaken(Conflict):
    """What a batch was decided on has changed meanwhile; nothing of it was written."""

    code = "overtaken"

    def __init__(self, name: str) -> None:
        super().__init__("This was changed by somebody else meanwhile; try again.", name=name)
