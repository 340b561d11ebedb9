"""External tables without Spark: the list of a table's files, its definition, and the files themselves.

The list is a Delta table with row tracking and one row per file. A stream on the files is a stream on their list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from tidemark.errors import (
    DataFileChanged,
    ExternalTableNotFound,
    LakeError,
    NotADeltaTable,
    NotAFile,
    SourceError,
    TableNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.file_names import matches
from tidemark.lake.storage import Storage, StoredFile, canonical_uri
from tidemark.model.codec import from_plain
from tidemark.model.external_tables import EXTERNAL_TABLE_PROPERTY, DataFile, ExternalTable
from tidemark.model.foreign_json import foreign_object
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.alike import alike

__all__ = ["definition", "external_table_ref", "files_of", "find_external_table", "list_uri", "require_unchanged"]

_ROOM = "external_tables"
_BY_PATH = re.compile(r"delta\.`(.+)`", re.IGNORECASE | re.DOTALL)  # a quoted path in SQL
_THREADS = 16
_COMPARED = 100  # external tables whose names are compared with a mistyped one


def list_uri(workspace: str, name: str) -> str:
    """The URI of the list of the external table `name`. Names are case-insensitive, and any form of a directory's URI
    is its name. `workspace`: `<lake root>/_tidemark`.
    """
    by_path = _BY_PATH.fullmatch(name)
    path = by_path[1].replace("``", "`") if by_path else name
    known_as = canonical_uri(path) if "/" in path else path.casefold()
    return f"{canonical_uri(workspace)}/{_ROOM}/{hashlib.sha256(known_as.encode()).hexdigest()[:32]}"


def external_table_ref(workspace: str, name: str, options: Mapping[str, Any] | None = None) -> TableRef:
    """The table that a stream on the external table reads: its list of files. Raises ExternalTableNotFound with
    similar names.
    """
    found = find_external_table(workspace, name, options)
    if found is None:
        raise ExternalTableNotFound(name=name, workspace=workspace, hint=_meant(workspace, name, options))
    return found


def find_external_table(workspace: str, name: str, options: Mapping[str, Any] | None = None) -> TableRef | None:
    """The same, or None: a question, not a failure."""
    try:
        log = DeltaLog.open(list_uri(workspace, name), options)
    except (TableNotFound, NotADeltaTable):
        return None
    return TableRef(name=name, path=log.uri, table_id=log.state().table_id, addressing=Addressing.PATH)


def _meant(workspace: str, name: str, options: Mapping[str, Any] | None) -> str:
    """Up to three external tables with names like it, as a question; "" if there is none, or no storage answers."""
    room = f"{canonical_uri(workspace)}/{_ROOM}"
    try:
        lists = list(islice(Storage(room, options).names(""), _COMPARED))
    except (LakeError, OSError):
        return ""
    found = [repr(one) for one in alike(name, (own for one in lists for own in _name_at(f"{room}/{one}", options)))]
    return f"Did you mean {' or '.join(found)}? " if found else ""


def _name_at(uri: str, options: Mapping[str, Any] | None) -> Iterator[str]:
    try:
        yield definition(DeltaLog.open(uri, options)).name
    except (SourceError, LakeError, OSError):
        return


def definition(log: DeltaLog) -> ExternalTable:
    """The external table that the list at `log` defines. Raises ExternalTableNotFound if it defines none."""
    text = log.state().metadata.configuration.get(EXTERNAL_TABLE_PROPERTY)
    try:
        found: ExternalTable = from_plain(ExternalTable, foreign_object(text))
    except (ValueError, TypeError, AttributeError) as error:
        raise ExternalTableNotFound(name=log.uri, workspace=log.uri) from error
    return found


def files_of(table: ExternalTable, options: Mapping[str, Any] | None = None) -> tuple[DataFile, ...]:
    """The current files of the table, without hidden ones (`_name`, `.name`).

    Raises TableNotFound if the directory does not exist, NotAFile for a pipe or a device in it, StorageRefused,
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
    """Nothing, or DataFileChanged if a file is not as the list has it."""
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
    if file.etag and now.etag and now.etag != file.etag:  # a store's times have whole seconds
        return file.path, f"its ETag is {now.etag}, not {file.etag}"
    return None
