"""Triggers are tested on the engine's hosts, which recover without long waits."""

from tests.engine.conftest import no_long_waits

__all__ = ["no_long_waits"]
