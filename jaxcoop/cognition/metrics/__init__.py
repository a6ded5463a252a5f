"""Process measures of COOP² on the logs of an episode.  Host side, numpy only.

Logs have the form of the reference's JSON files (7); a `profile`, cube or macrafter, picks the rules where the two
worlds differ.  Numbers are sections of docs/coop2.md.
"""

from jaxcoop.cognition.metrics.attempts import ATTEMPT_RATES, attempt_rates
from jaxcoop.cognition.metrics.attempts_cube import cube_events, cube_label, cube_target
from jaxcoop.cognition.metrics.attempts_macrafter import macrafter_events, resource_category, resource_of_text
from jaxcoop.cognition.metrics.full import Logs, full_metrics, metric_columns
from jaxcoop.cognition.metrics.profiles import PROFILES, Profile
from jaxcoop.cognition.metrics.rows import QUANTITIES, make_row, read_row

__all__ = [
    "ATTEMPT_RATES",
    "PROFILES",
    "QUANTITIES",
    "Logs",
    "Profile",
    "attempt_rates",
    "cube_events",
    "cube_label",
    "cube_target",
    "full_metrics",
    "macrafter_events",
    "make_row",
    "metric_columns",
    "read_row",
    "resource_category",
    "resource_of_text",
]
