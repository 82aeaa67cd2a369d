"""Who asks a person: the standing agent whose run it is; and what a conversation asks, in the words
of who asks. They stand in the log only."""

from typing import Any

from moot.agents.prompts.fencing import words
from moot.api.http.request import Request
from moot.core.errors import RunNotFound
from moot.core.state import awaited_people
from moot.core.state.conversation import title_of
from moot.core.threads.agent_bridge import handle
from moot.engine.threads.transcript import Talk, between
from moot.store.protocol import InboxRow

#: the kind of items that conversations have in the inbox
CONVERSATION = "conversation"
#: characters of what was said
BRIEF = 300


async def told(request: Request, row: InboxRow) -> dict[str, Any]:
    """Of a conversation who asks whom, where, and what; of other items whose run asks. Nothing when
    it was just answered."""
    services = request.services
    if row.kind != CONVERSATION:
        return await _member(request, row)
    try:
        run = (await services.host.view(row.tenant, row.run_id)).run
    except RunNotFound:
        return {}
    talk = run.conversations.get(row.node_id)
    if talk is None or not talk.asked:
        return {}
    index, _ = awaited_people.first(talk.asked)
    found = await between(Talk(services.store, run, talk), index, index, 1)
    if not found:
        return {}
    [turn], title = found, title_of(run, talk)
    asked = ", ".join(map(handle, talk.asked))
    text = " ".join(words(turn.content).split())
    text = text if len(text) <= BRIEF else text[: BRIEF - 1] + "…"
    question = f"{handle(turn.speaker)} asks {asked} in “{title}”: {text}"
    return {"question": question, "askedBy": turn.speaker, "title": title, "turnIndex": index}


async def _member(request: Request, row: InboxRow) -> dict[str, Any]:
    """Under the name it had when the run began."""
    found = await request.services.store.find_run(row.tenant, row.run_id)
    if found is None or found.member is None:
        return {}
    try:
        member = (await request.services.host.view(row.tenant, row.run_id)).run.member
    except RunNotFound:
        return {}
    if member is None:
        return {}
    return {"member": {"rosterId": member.roster_id, "persona": member.persona}}
