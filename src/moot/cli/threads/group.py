"""``moot thread`` with all of its commands."""

from moot.cli.threads import actions, controls
from moot.cli.threads.catch_up import catch_up, read
from moot.cli.threads.list import list_
from moot.cli.threads.new import new
from moot.cli.threads.search import search_threads
from moot.cli.threads.show import show, tail
from moot.cli.threads.thread import thread

for _command in (
    new, list_, show, tail, controls.invite, controls.uninvite, controls.mute, controls.unmute,
    controls.pause, controls.resume, controls.prod, controls.undo, controls.ttl,
    controls.discussion, controls.auto, controls.done, controls.mode,
    actions.rename, actions.link, actions.reopen, actions.fork, actions.archive, actions.unarchive,
    search_threads, read, catch_up,
):  # fmt: skip
    thread.add_command(_command)

__all__ = ["thread"]
