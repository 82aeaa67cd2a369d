"""``moot thread`` with every command it has."""

from moot.cli.catching_up import catch_up, read
from moot.cli.search import search_threads
from moot.cli.thread import thread

for _command in (search_threads, read, catch_up):
    thread.add_command(_command)

__all__ = ["thread"]
