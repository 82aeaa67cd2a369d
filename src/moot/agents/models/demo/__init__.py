"""The demo model: offline, without a key, and deterministic."""

from moot.agents.models.demo.model import DemoModel

__all__ = ["DemoModel"]
