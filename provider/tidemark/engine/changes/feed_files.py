"""Delta's change files: whether they can stand for their commits."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet

from tidemark.engine.changes.log_only import CHANGE_TYPE
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.paths import file_uri
from tidemark.model.table_log import Metadata
from tidemark.planning import source_schema
from tidemark.planning.change_sets.forms import FeedFile

__all__ = ["feed_is_usable"]

_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
_MAPPING_MODE = "delta.columnMapping.mode"
_THREADS = 16  # footers are asked of object stores, where one question takes milliseconds


def feed_is_usable(log: DeltaLog, files: Sequence[FeedFile], shown: Metadata) -> bool:
    """Whether all change files are there and carry row ids, and the columns of `shown` leave their own name free.

    Delta's own writers keep the row id in them, which the protocol does not ask of others; and VACUUM may have taken
    them while the data files still live. Either way the window is read from data files.
    """
    if any(file.metadata.configuration.get(_MAPPING_MODE, "none") == "id" for file in files):
        return False  # the column of change types has no field id
    if any(CHANGE_TYPE in (field.key, field.name.lower()) for field in source_schema.fields(shown)):
        return False
    with ThreadPoolExecutor(_THREADS) as pool:
        return all(pool.map(lambda file: _has_row_ids(log, file), files))


def _has_row_ids(log: DeltaLog, file: FeedFile) -> bool:
    try:
        with log.storage.open(file_uri(log.uri, file.path)) as opened:
            names = pyarrow.parquet.read_schema(opened).names
    except (FileNotFoundError, pa.ArrowInvalid):
        return False
    return file.metadata.configuration.get(_ROW_ID_COLUMN) in names and CHANGE_TYPE in names
