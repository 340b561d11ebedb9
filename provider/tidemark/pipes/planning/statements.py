"""Statements of loads, stages, file formats and pipes, as values.

Names have no quotes, and their parts are joined by dots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from tidemark.pipes.model.copying import MatchBy, OnError, Validation
from tidemark.pipes.model.formats import FileFormat

__all__ = [
    "AlterFileFormat",
    "AlterPipe",
    "AlterStage",
    "CopyInto",
    "CreateFileFormat",
    "CreatePipe",
    "CreateStage",
    "Describe",
    "DropObject",
    "FormatRef",
    "GivenOptions",
    "ListStage",
    "ObjectKind",
    "PipeForceResume",
    "PipeStatement",
    "PipeStatus",
    "RefreshPipe",
    "RenameObject",
    "ShowObjects",
    "StageSource",
    "UriSource",
]


class ObjectKind(StrEnum):
    """The kinds of objects, as statements spell them."""

    STAGE = "STAGE"
    FILE_FORMAT = "FILE FORMAT"
    PIPE = "PIPE"


@dataclass(frozen=True)
class FormatRef:
    """FILE_FORMAT: the name of a file format, or a format that is written out."""

    name: str | None = None
    format: FileFormat | None = None


@dataclass(frozen=True)
class StageSource:
    """`@stage/path`: `path` has no slash before it, and is the beginning of the names of files."""

    stage: str
    path: str = ""


@dataclass(frozen=True)
class UriSource:
    """A location in quotes, as written."""

    uri: str


@dataclass(frozen=True)
class GivenOptions:
    """The options of a COPY statement; None: not given. `on_error` has another default in a pipe."""

    on_error: OnError | None = None
    size_limit: int | None = None
    purge: bool | None = None
    force: bool | None = None
    load_uncertain_files: bool | None = None
    match_by: MatchBy | None = None
    truncate_columns: bool | None = None
    return_failed_only: bool | None = None
    enable_schema_evolution: bool | None = None


@dataclass(frozen=True)
class CopyInto:
    """COPY INTO table. `table`: as Spark reads it. `select`: the text of the items of a transformation; `alias`: of its
    source. `prefix`: of our option PREFIX, behind the path of the source.
    """

    table: str
    source: StageSource | UriSource
    columns: tuple[str, ...] = ()
    select: str | None = None
    alias: str | None = None
    files: tuple[str, ...] = ()
    pattern: str | None = None
    prefix: str = ""
    format: FormatRef | None = None
    options: GivenOptions = field(default_factory=GivenOptions)
    validation: Validation | None = None


@dataclass(frozen=True)
class CreateStage:
    """CREATE STAGE."""

    name: str
    url: str
    format: FormatRef | None = None
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterStage:
    """ALTER STAGE … SET; None: unchanged."""

    name: str
    url: str | None = None
    format: FormatRef | None = None
    comment: str | None = None
    if_exists: bool = False


@dataclass(frozen=True)
class CreateFileFormat:
    """CREATE FILE FORMAT."""

    name: str
    format: FileFormat
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterFileFormat:
    """ALTER FILE FORMAT … SET. `options` are checked with the type of the format, by `formats.file_format`."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    comment: str | None = None
    if_exists: bool = False


@dataclass(frozen=True)
class CreatePipe:
    """CREATE PIPE. `copy_statement`: its text, as written; `copy`: the same, parsed."""

    name: str
    copy_statement: str
    copy: CopyInto
    auto_ingest: bool = False
    notification_channel: str | None = None
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterPipe:
    """ALTER PIPE … SET or UNSET; None: unchanged."""

    name: str
    paused: bool | None = None
    comment: str | None = None
    unset_comment: bool = False
    if_exists: bool = False


@dataclass(frozen=True)
class RefreshPipe:
    """ALTER PIPE … REFRESH."""

    name: str
    prefix: str = ""
    modified_after: datetime | None = None
    if_exists: bool = False


@dataclass(frozen=True)
class RenameObject:
    """ALTER … RENAME TO, of a stage or a file format."""

    kind: ObjectKind
    name: str
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DropObject:
    """DROP."""

    kind: ObjectKind
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ShowObjects:
    """SHOW. `database`, `schema`: of IN."""

    kind: ObjectKind
    like: str | None = None
    database: str | None = None
    schema: str | None = None


@dataclass(frozen=True)
class Describe:
    """DESCRIBE."""

    kind: ObjectKind
    name: str


@dataclass(frozen=True)
class ListStage:
    """LIST @stage."""

    source: StageSource
    pattern: str | None = None


@dataclass(frozen=True)
class PipeStatus:
    """SELECT SYSTEM$PIPE_STATUS('pipe')."""

    name: str


@dataclass(frozen=True)
class PipeForceResume:
    """SELECT SYSTEM$PIPE_FORCE_RESUME('pipe'). `stale_too`: with STALENESS_CHECK_OVERRIDE."""

    name: str
    stale_too: bool = False


PipeStatement = (
    CopyInto
    | CreateStage
    | AlterStage
    | CreateFileFormat
    | AlterFileFormat
    | CreatePipe
    | AlterPipe
    | RefreshPipe
    | RenameObject
    | DropObject
    | ShowObjects
    | Describe
    | ListStage
    | PipeStatus
    | PipeForceResume
)
