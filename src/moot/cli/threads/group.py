"""``moot thread`` with all of its commands."""

from moot.cli.threads.catch_up import catch_up, read
from moot.cli.threads.controls import CONTROL_COMMANDS
from moot.cli.threads.search import search_threads
from moot.cli.threads.show import list_, show, tail
from moot.cli.threads.thread import new, thread

for _command in (new, list_, show, tail, *CONTROL_COMMANDS, search_threads, read, catch_up):
    thread.add_command(_command)

__all__ = ["thread"]
