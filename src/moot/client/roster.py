"""The resource of standing agents."""

from moot.client.http.methods import Resource, S, client_method
from moot.client.operations import roster


class RosterResource(Resource[S]):
    """All standing agents."""

    entries = client_method(roster.list_roster_entries)
    entry = client_method(roster.get_roster_entry)
    list = client_method(roster.list_members)
    get = client_method(roster.get_member)
    work = client_method(roster.get_member_work)
    hire = client_method(roster.hire_member)
    change = client_method(roster.change_member)
    dismiss = client_method(roster.dismiss_member)
    history = client_method(roster.list_member_history)
    pause = client_method(roster.pause_member)
    resume = client_method(roster.resume_member)
    run = client_method(roster.run_member_workflow)
