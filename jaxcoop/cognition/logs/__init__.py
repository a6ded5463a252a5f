"""Episodes on the host: typed records, tables for Parquet, the row of the results table, the reference's JSON files."""

from jaxcoop.cognition.logs.episode import (
    RECORDS,
    REPAIR_SENDER,
    Calls,
    Changes,
    Check,
    EpisodeLog,
    Failures,
    Holdings,
    Messages,
    Plans,
    Process,
    Repairs,
    Timeline,
    none_of,
)
from jaxcoop.cognition.logs.export import RunInfo, file_texts, reference_files
from jaxcoop.cognition.logs.row import log_row
from jaxcoop.cognition.logs.tables import from_tables, to_tables
from jaxcoop.cognition.logs.vocabulary import TaskWords, Vocabulary, agent_name

__all__ = [
    "RECORDS",
    "REPAIR_SENDER",
    "Calls",
    "Changes",
    "Check",
    "EpisodeLog",
    "Failures",
    "Holdings",
    "Messages",
    "Plans",
    "Process",
    "Repairs",
    "RunInfo",
    "TaskWords",
    "Timeline",
    "Vocabulary",
    "agent_name",
    "file_texts",
    "from_tables",
    "log_row",
    "none_of",
    "reference_files",
    "to_tables",
]
