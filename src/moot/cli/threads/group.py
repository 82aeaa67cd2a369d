"""``moot thread`` with every command it has."""

from moot.cli.threads import actions as acts
from moot.cli.threads import controls as steering
from moot.cli.threads.catch_up import catch_up, read
from moot.cli.threads.list import list_
from moot.cli.threads.new import new
from moot.cli.threads.search import search_threads
from moot.cli.threads.show import show, tail
from moot.cli.threads.thread import thread

for _command in (
    new, list_, show, tail, steering.invite, steering.uninvite, steering.mute, steering.unmute,
    steering.pause, steering.resume, steering.prod, steering.undo, steering.ttl,
    steering.discussion, steering.auto, steering.done, steering.mode,
    acts.rename, acts.link, acts.reopen, acts.fork, acts.archive, acts.unarchive,
    search_threads, read, catch_up,
):  # fmt: skip
    thread.add_command(_command)

__all__ = ["thread"]
