"""COPY statements with their names resolved: of stages, file formats and tables."""

from __future__ import annotations

from dataclasses import dataclass, fields

import sqlalchemy as sa

from tidemark.control.kept_tables import require_not_kept
from tidemark.control.store import ControlStore
from tidemark.lake.storage import canonical_uri
from tidemark.pipes.model.copying import CopyOptions, Load, OnError
from tidemark.pipes.model.formats import FileFormat
from tidemark.pipes.planning.formats import merged
from tidemark.pipes.planning.locations import require_location
from tidemark.pipes.planning.statements import CopyInto, FormatRef, GivenOptions, StageSource, UriSource
from tidemark.pipes.store import file_formats, stages
from tidemark.streams.worker.sources import Tables

__all__ = ["Place", "format_of", "load_of", "place_of"]


@dataclass(frozen=True)
class Place:
    """The directory of a source, and the beginning of the names of its files."""

    location: str
    prefix: str = ""


def load_of(copy: CopyInto, *, store: ControlStore, tables: Tables, default_error: OnError) -> Load:
    """The statement with its names resolved. `default_error`: ON_ERROR if the statement does not say it.

    A named format takes the place of the stage's. Options that are written out are added to those of the stage, if its
    format has the same type. Raises StageNotFound, FileFormatNotFound, InvalidArgument, TargetIsKept, and what `tables`
    raises.
    """
    place, file_format = store.read(lambda connection: (_place(connection, copy.source), _format(connection, copy)))
    path = tables(copy.table).uri
    require_not_kept(store, {path: copy.table})
    return Load(
        table=copy.table,
        path=path,
        location=place.location,
        prefix=place.prefix + copy.prefix,
        pattern=copy.pattern,
        files=copy.files,
        format=file_format,
        columns=copy.columns,
        select=copy.select,
        alias=copy.alias,
        options=_options(copy.options, default_error),
    )


def place_of(source: StageSource | UriSource, store: ControlStore) -> Place:
    """The place of a source. Raises StageNotFound, InvalidArgument."""
    return store.read(lambda connection: _place(connection, source))


def format_of(copy: CopyInto, store: ControlStore) -> FileFormat:
    """The format of the statement's files. Raises StageNotFound, FileFormatNotFound."""
    return store.read(lambda connection: _format(connection, copy))


def _place(connection: sa.Connection, source: StageSource | UriSource) -> Place:
    if isinstance(source, StageSource):
        return Place(stages.find_stage(connection, source.stage).location, source.path)
    require_location(source.uri)
    return Place(canonical_uri(source.uri))


def _format(connection: sa.Connection, copy: CopyInto) -> FileFormat:
    """The format of the stage is asked for only if it counts."""
    if copy.format is not None and copy.format.name is not None:
        return _of_ref(connection, copy.format) or FileFormat()
    if isinstance(copy.source, UriSource):
        return merged(None, _of_ref(connection, copy.format))
    stage = stages.find_stage(connection, copy.source.stage)
    its_own = _of_ref(connection, FormatRef(stage.format_name, stage.format))
    return merged(its_own, _of_ref(connection, copy.format))


def _of_ref(connection: sa.Connection, ref: FormatRef | None) -> FileFormat | None:
    if ref is None or ref.name is None:
        return None if ref is None else ref.format
    return file_formats.find_file_format(connection, ref.name).format


def _options(given: GivenOptions, default_error: OnError) -> CopyOptions:
    said = {one.name: getattr(given, one.name) for one in fields(given)}
    known = {name: value for name, value in said.items() if value is not None}
    return CopyOptions(**{"on_error": default_error, **known})
