"""The objects that the statements of pipes name: whether they exist, and the pipes that name one."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.control.store import ControlStore
from tidemark.errors import (
    FileFormatNotFound,
    NotYetSupported,
    SqlCompilationError,
    StageNotFound,
    TableNotFound,
    TidemarkError,
)
from tidemark.lake.storage import canonical_uri
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.model.status import NeededObjects
from tidemark.pipes.planning.sql_copy import copy_of_pipe
from tidemark.pipes.planning.statements import CopyInto
from tidemark.pipes.store import pipes
from tidemark.pipes.worker.resolve import format_of, place_of
from tidemark.sql.table_names import table_name
from tidemark.sql.text import Cursor
from tidemark.streams.worker.sources import Tables

__all__ = ["copy_of", "needed_objects", "pipes_of_table"]


def copy_of(pipe: Pipe) -> CopyInto:
    """The pipe's statement. Raises SqlCompilationError and NotYetSupported if this release does not understand it."""
    return copy_of_pipe(Cursor(pipe.copy_statement))


def needed_objects(store: ControlStore, pipe: Pipe, tables: Tables) -> NeededObjects:
    """Whether the stage, the file format and the table of the pipe's statement exist. A table that cannot be looked at
    counts as existing. Raises what `copy_of` raises.
    """
    copy = copy_of(pipe)
    stage = _exists(lambda: place_of(copy.source, store), StageNotFound)
    return NeededObjects(
        stage=stage,
        file_format=not stage or _exists(lambda: format_of(copy, store), FileFormatNotFound),
        table=_exists(lambda: tables(copy.table), TableNotFound),
    )


def pipes_of_table(
    store: ControlStore, table: str, *, is_same: Callable[[str], bool] | None = None
) -> tuple[Pipe, ...]:
    """The pipes that load into the table of that name, also dropped ones, by name and age. Those whose statement this
    release does not understand are left out. `is_same`: whether another name that ends like this one leads to the same
    table.
    """
    meant = _identity(table)

    def is_meant(pipe: Pipe) -> bool:
        name = _target(pipe)
        if name is None or _identity(name) == meant:
            return name is not None
        return is_same is not None and _last(_identity(name)) == _last(meant) and is_same(name)

    return tuple(pipe for pipe in store.read(pipes.pipes_ever) if is_meant(pipe))


def _target(pipe: Pipe) -> str | None:
    try:
        return copy_of(pipe).table
    except (SqlCompilationError, NotYetSupported):
        return None


def _last(identity: tuple[str, ...]) -> str:
    """The last part of a name or of a path."""
    return identity[-1].rpartition("/")[2].casefold()


def _identity(table: str) -> tuple[str, ...]:
    """One value for every spelling of a table's name."""
    meant = table_name(table)
    return tuple(map(str.casefold, meant.parts)) if meant.path is None else (canonical_uri(meant.path),)


def _exists(look: Callable[[], object], missing: type[TidemarkError]) -> bool:
    try:
        look()
    except missing:
        return False
    except TidemarkError:
        return True
    return True
