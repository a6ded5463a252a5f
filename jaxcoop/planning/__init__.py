"""Planning: slow, host-side planners (language models above all) at the decision points of batched episodes.

`process` says what an episode must offer, `planner` who answers, `front_ends` how the two are driven.  A
`Hub` carries requests to a client, limits, merges, retries and records them.
"""

from jaxcoop.planning.batches import Progress
from jaxcoop.planning.decide import make_decide
from jaxcoop.planning.front_ends import FRONT_ENDS, FrontEnd
from jaxcoop.planning.hub import Hub
from jaxcoop.planning.planner import FunctionPlanner, Planner, PlannerUnusable, TextPlanner
from jaxcoop.planning.process import Process, ProcessError, Status, View
from jaxcoop.planning.record import Record, RecordError
from jaxcoop.planning.request import Answer, Message, Reply, Request
from jaxcoop.planning.usage import Usage, usage_of

__all__ = [
    "FRONT_ENDS",
    "Answer",
    "FrontEnd",
    "FunctionPlanner",
    "Hub",
    "Message",
    "Planner",
    "PlannerUnusable",
    "Process",
    "ProcessError",
    "Progress",
    "Record",
    "RecordError",
    "Reply",
    "Request",
    "Status",
    "TextPlanner",
    "Usage",
    "View",
    "make_decide",
    "usage_of",
]
