"""Columns and keys that cannot go together are refused before anything is stored, and before a job is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidemark.delivery.planning.write_fit import require_fit
from tidemark.errors import ExternalTableNotFound, LogIncomplete
from tidemark.model.statements import PlannedWrite
from tidemark.model.streams import StreamWindow, WindowKind
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sources import SourceHead, Tables, look_at_sources, schema_of
from tidemark.streams.worker.targets import TargetHead, look_at_targets

__all__ = ["require_columns", "require_columns_of_windows", "require_columns_of_writes"]

Schemas = Mapping[str, Callable[[], str] | None]


def require_columns(sources: Sequence[SourceHead], targets: Sequence[TargetHead]) -> None:
    """Each append and merge fits its target by the two logs. An idle stream and one on a view is not looked at. Raises
    TargetDoesNotFit, MissingMergeKey.
    """
    _require({source.stream_name.casefold(): source.schema for source in sources}, targets)


def require_columns_of_windows(windows: Sequence[StreamWindow], targets: Sequence[TargetHead], tables: Tables) -> None:
    """As `require_columns`, of windows that are known already."""
    _require({window.stream_name.casefold(): _read_by(window, tables) for window in windows}, targets)


def require_columns_of_writes(
    runtime: Runtime, streams: Sequence[str], writes: Sequence[PlannedWrite], bound: Bound
) -> None:
    """Check columns as begin will, for writes whose quarantine does not exist yet. Raises what begin raises of sources
    and targets.
    """
    targets = look_at_targets(runtime.store, writes, runtime.tables, runtime.limits)
    require_columns(look_at_sources(runtime.store, streams, runtime.tables, bound, to_read=True), targets)


def _read_by(window: StreamWindow, tables: Tables) -> Callable[[], str] | None:
    if window.view is not None:
        return None
    version = window.start if window.kind is WindowKind.INITIAL_ROWS else window.end
    return lambda: schema_of(tables(window.source), version, window.mode)


def _require(read: Schemas, targets: Sequence[TargetHead]) -> None:
    schemas: dict[str, str] = {}
    for target in targets:
        name = (target.write.source or "").casefold()
        schema = read.get(name)
        if schema is None:
            continue
        try:
            found = schemas.setdefault(name, schemas.get(name) or schema())
        except (LogIncomplete, ExternalTableNotFound):  # whoever reads the window says what is wrong with it
            continue
        require_fit(target.write, found, target.schema_json)
