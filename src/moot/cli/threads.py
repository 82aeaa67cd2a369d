"""``moot thread`` with every command it has."""

from moot.cli import thread_acts as acts
from moot.cli import thread_steer as steering
from moot.cli.catching_up import catch_up, read
from moot.cli.search import search_threads
from moot.cli.thread import thread
from moot.cli.thread_list import list_
from moot.cli.thread_new import new
from moot.cli.thread_show import show, tail

for _command in (
    new, list_, show, tail, steering.invite, steering.uninvite, steering.mute, steering.unmute,
    steering.pause, steering.resume, steering.prod, steering.undo, steering.ttl,
    steering.discussion, steering.auto, steering.done, steering.mode,
    acts.rename, acts.link, acts.reopen, acts.fork, acts.archive, acts.unarchive,
    search_threads, read, catch_up,
):  # fmt: skip
    thread.add_command(_command)

__all__ = ["thread"]
