"""Delta's change files: whether they can replace the data files of their commits."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet

from tidemark.changes.driver.log_only import CHANGE_TYPE, ROW_ID_NAME
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.forms import FeedFile
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.failures import is_of_storage
from tidemark.lake.paths import file_uri
from tidemark.model.table_log import Metadata

__all__ = ["why_unusable"]

_THREADS = 16  # footers are in object stores, where one request takes milliseconds


def why_unusable(log: DeltaLog, files: Sequence[FeedFile], shown: Metadata) -> str | None:
    """The reason not to use the change files; None if all exist, have row ids, and `shown` does not use their columns.

    Delta's own writers keep row ids in them, but the protocol does not demand it. VACUUM may have removed them while
    the data files are live. In both cases the window is read from data files.
    """
    if any(source_schema.mapping_mode(file.metadata) == "id" for file in files):
        return "columns are mapped by id, and that of change types has none"
    if any(CHANGE_TYPE in (field.key, field.name.lower()) for field in source_schema.fields(shown)):
        return f"the table has a column {CHANGE_TYPE} of its own"
    with ThreadPoolExecutor(_THREADS) as pool:
        problems = pool.map(lambda file: _problem(log, file), files)
        return next((problem for problem in problems if problem), None)


def _problem(log: DeltaLog, file: FeedFile) -> str | None:
    try:
        with log.storage.open(file_uri(log.uri, file.path)) as opened:
            names = pyarrow.parquet.read_schema(opened).names
    except FileNotFoundError:
        return f"{file.path} is gone"
    except (pa.ArrowException, OSError) as error:
        if is_of_storage(error):
            raise
        return f"{file.path} is damaged: {error}"
    has_row_ids = file.metadata.configuration.get(ROW_ID_NAME) in names and CHANGE_TYPE in names
    return None if has_row_ids else f"{file.path} has no row ids"
