"""External tables without Spark: where the list of a table's files is, what it says of the table, and what lies there.

The list is a Delta table with row tracking, a row a file; so a stream on the files is one on their list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tidemark.errors import DataFileChanged, ExternalTableNotFound, NotADeltaTable, NotAFile, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.file_names import matches
from tidemark.lake.storage import Storage, StoredFile, canonical_uri
from tidemark.model.codec import from_plain
from tidemark.model.external_tables import EXTERNAL_TABLE_PROPERTY, DataFile, ExternalTable
from tidemark.model.foreign_json import foreign_object
from tidemark.model.streams import Addressing, TableRef

__all__ = ["definition", "external_table_ref", "files_of", "list_uri", "require_unchanged"]

_ROOM = "external_tables"
_BY_PATH = re.compile(r"delta\.`(.+)`", re.IGNORECASE | re.DOTALL)  # as SQL has a path in quotes
_THREADS = 16


def list_uri(workspace: str, name: str) -> str:
    """Where the list of the external table `name` is; `workspace` is `<lake root>/_tidemark`. Names know no case, and
    for a directory any form of its URI is its name.
    """
    by_path = _BY_PATH.fullmatch(name)
    path = by_path[1].replace("``", "`") if by_path else name
    known_as = canonical_uri(path) if "/" in path else path.casefold()
    return f"{canonical_uri(workspace)}/{_ROOM}/{hashlib.sha256(known_as.encode()).hexdigest()[:32]}"


def external_table_ref(workspace: str, name: str, options: Mapping[str, Any] | None = None) -> TableRef:
    """What a stream on the external table reads: its list of files. Raises ExternalTableNotFound."""
    uri = list_uri(workspace, name)
    try:
        log = DeltaLog.open(uri, options)
    except (TableNotFound, NotADeltaTable) as error:
        raise ExternalTableNotFound(name=name, workspace=workspace) from error
    return TableRef(name=name, path=log.uri, table_id=log.state().table_id, addressing=Addressing.PATH)


def definition(log: DeltaLog) -> ExternalTable:
    """What the list at `log` says of its external table. Raises ExternalTableNotFound where it is another table."""
    text = log.state().metadata.configuration.get(EXTERNAL_TABLE_PROPERTY)
    try:
        found: ExternalTable = from_plain(ExternalTable, foreign_object(text))
    except (ValueError, TypeError, AttributeError) as error:
        raise ExternalTableNotFound(name=log.uri, workspace=log.uri) from error
    return found


def files_of(table: ExternalTable, options: Mapping[str, Any] | None = None) -> tuple[DataFile, ...]:
    """The files of the table as they lie there now; hidden ones (`_name`, `.name`) are no part of it.

    Raises TableNotFound where the directory is not there, NotAFile for a pipe or a device among them, StorageRefused,
    StorageUnreachable.
    """
    try:
        found = list(Storage(table.location, options).files_below())
    except FileNotFoundError as error:
        raise TableNotFound(path=table.location) from error
    return tuple(_data_file(table, file) for file in found if matches(file.name, table.pattern))


def require_unchanged(
    table: ExternalTable, expected: Iterable[DataFile], options: Mapping[str, Any] | None = None
) -> None:
    """Say nothing if each file is still what the list says. Raises DataFileChanged."""
    storage = Storage(table.location, options)
    with ThreadPoolExecutor(_THREADS) as pool:
        problems = [found for found in pool.map(lambda file: _problem(storage, file), expected) if found is not None]
    if problems:
        first, problem = problems[0]
        raise DataFileChanged(name=table.name, count=len(problems), first=first, problem=problem)


def _data_file(table: ExternalTable, file: StoredFile) -> DataFile:
    if file.problem is not None:
        raise NotAFile(path=f"{table.location}/{file.name}", problem=file.problem)
    return DataFile(path=file.name, size=file.size, modified_at=file.modified_at, etag=file.etag)


def _problem(storage: Storage, file: DataFile) -> tuple[str, str] | None:
    now = storage.stored_file(file.path)
    if now is None:
        return file.path, "it is gone"
    if now.problem is not None:
        return file.path, now.problem
    if now.size != file.size:
        return file.path, f"it has {now.size} bytes, not {file.size}"
    if now.modified_at != file.modified_at:
        return file.path, f"it was written at {now.modified_at.isoformat()}, not {file.modified_at.isoformat()}"
    return None
