"""The demo model: offline, without a key, the same words for the same turn every time."""

from moot.agents.models.demo.model import DemoModel

__all__ = ["DemoModel"]
