"""Cooperative tasks and the constraints that guard them; one vocabulary for all environments (COOP², sections 4, C)."""

from jaxcoop.cooperation.attempts import Attempts, Totals, add, events, no_attempts, no_totals, violations
from jaxcoop.cooperation.constraints import Constraint, Counts, deficits, satisfied, scores
from jaxcoop.cooperation.counting import first_with, tally
from jaxcoop.cooperation.tasks import TaskTable, no_tasks

__all__ = [
    "Attempts",
    "Constraint",
    "Counts",
    "TaskTable",
    "Totals",
    "add",
    "deficits",
    "events",
    "first_with",
    "no_attempts",
    "no_tasks",
    "no_totals",
    "satisfied",
    "scores",
    "tally",
    "violations",
]
