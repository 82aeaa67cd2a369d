"""Errors of threads.

Conflict                        409
├── NameTaken                        name_taken
├── SeatTaken                        seat_taken
├── TaskNotOpen                      task_not_open
├── TooManyTasks                     too_many_tasks
└── TooManyLinks                     too_many_links
"""

from moot.core.errors import Conflict


class NameTaken(Conflict):
    code = "name_taken"


class SeatTaken(Conflict):
    code = "seat_taken"


class TaskNotOpen(Conflict):
    code = "task_not_open"


class TooManyTasks(Conflict):
    code, passing = "too_many_tasks", True


class TooManyLinks(Conflict):
    code = "too_many_links"
