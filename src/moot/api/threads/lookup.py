"""Find the thread that a request names, and check the caller's access."""

import re

from moot.api.access.auth import is_agent_key
from moot.api.http.request import Request
from moot.core.conversations.participants import not_invited_error
from moot.core.errors import BadRequest, ConversationClosed, NotFound, RunNotFound
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.participants import needs_invitation
from moot.core.state.run import Run


async def find_thread(request: Request) -> tuple[Run, Conversation]:
    """Return the run and conversation that ``thread_id`` names. A conversation id works as well."""
    return await find_thread_by_id(request, request.params["thread_id"])


async def find_thread_to_write(request: Request) -> tuple[Run, Conversation]:
    """Return the same without waiting for pending commits.

    The command that follows waits for them.
    """
    return await find_thread_by_id(request, request.params["thread_id"], settled=False)


async def find_thread_by_id(
    request: Request, name: str, settled: bool = True
) -> tuple[Run, Conversation]:
    run_id, *rest = re.split("[~:]", name)
    host, tenant = request.host, request.tenant
    try:
        run = (await (host.view if settled else host.runs.head)(tenant, run_id)).run
    except RunNotFound:
        raise NotFound("There is no such thread.", threadId=name) from None
    conversations = list(run.conversations.values())
    if rest:
        conversations = [
            conversation
            for conversation in conversations
            if name in (conversation.conversation_id, thread_id(run, conversation))
        ]
    if len(conversations) > 1:
        raise BadRequest(
            "The run has several conversations; name one.",
            threadIds=[thread_id(run, conversation) for conversation in conversations],
        )
    if not conversations:
        raise NotFound("There is no such thread.", threadId=name)
    _check_still_invited(request, conversations[0])
    return run, conversations[0]


def _check_still_invited(request: Request, conversation: Conversation) -> None:
    """Raise when the agents of a thread key have lost their invitation."""
    key = request.caller
    gone = [name for name in key.speaks_as if needs_invitation(conversation, name)]
    if key.thread is not None and is_agent_key(key) and len(gone) == len(key.speaks_as):
        raise not_invited_error(conversation, gone[0])


def check_open(conversation: Conversation, name: str) -> None:
    if not conversation.open:
        raise ConversationClosed("The conversation is closed.", threadId=name)
