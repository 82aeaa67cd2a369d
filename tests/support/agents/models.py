"""What the tests of models share."""

from moot.agents.definitions.manifest import Agent
from moot.agents.models.protocol import ModelMessage, ModelRequest
from moot.agents.tools.toolbox import Toolbox

KEY = "sk-very-secret-0123456789"
REAL = ("openai", "anthropic")
HELLO = ModelRequest(model="", messages=(ModelMessage(role="user", content="Hello?"),))


class Waits:
    """Waiting that takes no time and is remembered."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class NoTools:
    """Tools of a host without any."""

    async def for_agent(self, agent: Agent) -> Toolbox:
        return Toolbox({})
