"""The table of files of a pipe or of a COPY target. It has a row for each event, and no row is ever changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from tidemark.pipes.model.copying import Load

__all__ = ["COPY_KEPT", "COPY_SUFFIX", "DAY", "ENDS", "FILES_SCHEMA", "KEPT", "PLANS", "Batch", "Event", "app_id"]

COPY_SUFFIX = "__copy_history"  # of the directory beside a table that COPY has written
KEPT = timedelta(days=14)  # how long a pipe remembers a file
COPY_KEPT = timedelta(days=64)  # how long a table that COPY has written does
PLANS, ENDS = "plans", "ends"  # transactions that number batches in the table of files
DAY = "day"  # partitions of the table
FILES_SCHEMA = (
    "event STRING, at TIMESTAMP, file STRING, size BIGINT, modified_at TIMESTAMP, etag STRING, source STRING,"
    " batch BIGINT, attempt STRING, status STRING, rows_parsed BIGINT, rows_loaded BIGINT, errors_seen BIGINT,"
    " error_limit BIGINT, first_error STRING, first_error_line BIGINT, first_error_character BIGINT,"
    " first_error_column STRING, system_error STRING, version BIGINT, run STRING, statement STRING, day DATE"
)


def app_id(table_id: str, kind: str | None = None) -> str:
    """The application of Delta that numbers the batches of a table of files.

    Without a `kind` it is the target's, with one that of the table itself.
    """
    return "/".join(filter(None, ("tidemark/files", table_id, kind)))


class Event(StrEnum):
    """The events, in the order in which a file meets them. BATCH, DONE and LISTED are of no single file. The last two
    are of files that a look for new ones leaves out; `source` is the location that they are below.
    """

    QUEUED = "queued"  # a file has come; `batch` is the last one that was planned before
    PLANNED = "planned"  # it belongs to a batch
    RESULT = "result"  # of an attempt, before the commit of its rows
    BATCH = "batch"  # its number, statement and run, in one commit with its files
    DONE = "done"  # the attempt whose rows are in the target at `version`; `source` is the target's id
    LISTED = "listed"  # a full listing: `file` is the greatest name, `source` the place
    COPIED = "copied"  # COPY INTO has loaded it into the table
    LATE = "late"  # it is older than the history, which may have forgotten it


@dataclass(frozen=True)
class Batch:
    """Files that are loaded by one commit. `base_version`: the target's version when it was planned. `run`: the key of
    the run that planned it.
    """

    number: int
    load: Load
    base_version: int
    run: str
