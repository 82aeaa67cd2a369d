"""The resource of schedules."""

from moot.client.http.methods import Resource, S, client_method
from moot.client.operations import schedules


class SchedulesResource(Resource[S]):
    """All schedules."""

    make = client_method(schedules.create_schedule)
    check = client_method(schedules.check_schedule)
    list = client_method(schedules.list_schedules)
    get = client_method(schedules.get_schedule)
    change = client_method(schedules.change_schedule)
    remove = client_method(schedules.remove_schedule)
    pause = client_method(schedules.pause_schedule)
    resume = client_method(schedules.resume_schedule)
    run = client_method(schedules.run_schedule)
    skip = client_method(schedules.skip_slot)
    backfill = client_method(schedules.backfill_schedule)
    fires = client_method(schedules.list_fires)
    history = client_method(schedules.list_schedule_changes)
