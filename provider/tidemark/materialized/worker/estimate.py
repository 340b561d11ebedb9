"""The choice of a way to refresh, by what the logs tell. No job is started for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.model.definitions import KeptView, RefreshMode
from tidemark.materialized.model.refreshes import Measured
from tidemark.materialized.model.shapes import Shape
from tidemark.materialized.planning.cost import Choice, Estimate, choose
from tidemark.materialized.worker.sizes import BaseChanges, changes_of, table_bytes
from tidemark.model.statements import RefreshHow
from tidemark.model.streams import StreamWindow, WindowKind
from tidemark.streams.worker.opening import Tables, wherever

__all__ = ["choice_for", "foreign_write", "kept_log"]


def kept_log(view: KeptView, tables: Tables) -> DeltaLog:
    """The log of the kept table. Raises TableNotFound, NotADeltaTable."""
    return wherever(tables)(view.kept)


def choice_for(
    view: KeptView,
    window: StreamWindow,
    mode: RefreshMode,
    tables: Tables,
    *,
    kept_version: int | None,
    must_be_whole: str | None = None,
    earlier: Sequence[Measured] = (),
) -> Choice:
    """The way to refresh, with both estimates. `kept_version`: of the kept table after the last refresh.
    `must_be_whole`: a reason to write all rows, known before. `earlier`: refreshes whose seconds are known.

    Raises LogIncomplete, VersionNotFound, TableNotFound.
    """
    log = kept_log(view, tables)
    found = [changes_of(base, wherever(tables)(base.table)) for base in window.bases]
    estimate = Estimate(
        shape=view.shape,
        bases=tuple(one.size for one in found),
        kept_bytes=table_bytes(log, log.head()) or 0,
        kept_rows=view.kept_rows,
        groups=view.groups,
    )
    choice = choose(estimate, earlier)
    named = [(base.table.name, one) for base, one in zip(window.bases, found, strict=True)]
    why = must_be_whole or _reason(view, window, mode, named) or foreign_write(log, kept_version)
    if why is not None:
        return replace(choice, how=RefreshHow.WHOLE, why=why)
    if mode is RefreshMode.INCREMENTAL and choice.how is RefreshHow.WHOLE:
        return replace(choice, how=_incremental(view), why="REFRESH_MODE = INCREMENTAL")
    if any(one.has_files for one in found):
        return replace(choice, how=_incremental(view), why="files were added, and none was removed")
    return choice


def _reason(
    view: KeptView, window: StreamWindow, mode: RefreshMode, bases: Sequence[tuple[str, BaseChanges]]
) -> str | None:
    """Why all rows are written at any cost; None: the cheaper way is taken."""
    if window.kind is WindowKind.INITIAL_ROWS:
        return "the first refresh"
    if view.shape.shape is Shape.PLAIN:
        return view.shape.why
    if mode is RefreshMode.FULL:
        return "REFRESH_MODE = FULL"
    restored = [f"the base {name} was restored" for name, one in bases if one.restored is not None]
    lost = [f"files of {name} were overwritten or removed" for name, one in bases if one.lost_files]
    return next(iter([*restored, *lost]), None)


def foreign_write(log: DeltaLog, kept_version: int | None) -> str | None:
    """The reason to write all rows if somebody else has changed the kept table since that version of it.

    Raises LogIncomplete, VersionNotFound.
    """
    head = log.head()
    changed = kept_version is not None and (head < kept_version or log.has_changes(kept_version, head))
    return "another writer has changed the kept table" if changed else None


def _incremental(view: KeptView) -> RefreshHow:
    """Partial aggregates of more than twice the groups are compacted."""
    grown = view.kept_rows is not None and view.groups is not None and view.kept_rows > 2 * max(view.groups, 1)
    return RefreshHow.COMPACTED if view.shape.shape is Shape.SUMS and grown else RefreshHow.CHANGES
