"""Keys that identify rows instead of row ids: the columns that can be keys, and the windows that they can read."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.changes.planning import source_schema
from tidemark.changes.planning.source_schema import Field
from tidemark.errors import InvalidArgument, KeyColumnChanged, NotYetSupported
from tidemark.model.streams import StreamMode
from tidemark.model.table_log import Metadata
from tidemark.model.views import ViewQuery

__all__ = ["require_fitting_mode", "require_keys", "require_same_keys", "require_view_keys"]

_EXACT = ("boolean", "byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz")
_DECIMAL = "decimal("
_ALLOWED = "a key is made of whole numbers, decimals, booleans, text, dates and times"


def require_fitting_mode(mode: StreamMode, keys: Sequence[str], *, on_view: bool) -> None:
    """Nothing, if a stream can have this mode and compare by these keys, which may be none.

    Raises InvalidArgument for keys in another mode than standard or on a view, NotYetSupported for every change of a
    view.
    """
    if on_view and mode is StreamMode.INSERT_ONLY:
        problem = "a stream on a view is standard or append_only (R6)"
        raise InvalidArgument(argument="mode", value=mode.value, problem=problem)
    if on_view and mode is StreamMode.EVERY_CHANGE:
        raise NotYetSupported(feature="Every change of a view", instead="Create the stream on its tables.")
    if not keys:
        return
    if on_view:
        raise InvalidArgument(
            argument="keys", value=list(keys), problem="a view's rows have ids of its tables' rows; leave keys out"
        )
    if mode is not StreamMode.STANDARD:
        problem = f"only mode 'standard' compares by key, not {mode.value!r}"
        raise InvalidArgument(argument="keys", value=list(keys), problem=problem)


def require_keys(metadata: Metadata, keys: Sequence[str], table: str) -> tuple[str, ...]:
    """The key columns as the table spells them. Raises InvalidArgument, with column and type, for a column that is
    missing, has parts or is given twice. Raises it also for a type whose values do not compare exactly.
    """
    if isinstance(keys, str):
        raise InvalidArgument(argument="keys", value=keys, problem="give a list of column names")
    found = []
    for key in keys:
        field = _field(metadata, key)
        if field is None:
            columns = ", ".join(one.name for one in source_schema.fields(metadata))
            problem = f"{table} has no column {key!r} at its top level; it has {columns}"
            raise InvalidArgument(argument="keys", value=list(keys), problem=problem)
        if not _is_exact(field):
            problem = f"column {field.name!r} of {table} is of type {_type(field)}; {_ALLOWED}"
            raise InvalidArgument(argument="keys", value=list(keys), problem=problem)
        found.append(field.name)
    if len(set(found)) < len(found):
        raise InvalidArgument(argument="keys", value=list(keys), problem="a column is given twice")
    return tuple(found)


def require_view_keys(view: ViewQuery, keys: Sequence[str]) -> tuple[str, ...]:
    """The key columns as the view spells them, with the errors of `require_keys`."""
    return require_keys(Metadata(view.digest, view.schema_json, (), {}), keys, view.name)


def require_same_keys(
    before: Metadata, after: Metadata, keys: Sequence[str], *, stream: str, table: str, start: int, end: int
) -> None:
    """Nothing, or KeyColumnChanged unless both ends of a window have the same key columns."""
    for key in keys:
        problem = _change(_field(before, key), _field(after, key), start, end)
        if problem:
            raise KeyColumnChanged(stream=stream, table=table, column=key, start=start, end=end, problem=problem)


def _change(old: Field | None, new: Field | None, start: int, end: int) -> str | None:
    if old is None:
        return f"is missing in version {start}"
    if new is None:
        return f"is missing in version {end}: it was renamed or dropped"
    if old.key != new.key:
        return f"is another column in version {end} than in version {start}"
    return None if _is_exact(new) else f"is of type {_type(new)} in version {end}"


def _field(metadata: Metadata, name: str) -> Field | None:
    return next((field for field in source_schema.fields(metadata) if field.name.lower() == name.lower()), None)


def _is_exact(field: Field) -> bool:
    kind = field.form["type"]
    return isinstance(kind, str) and (kind in _EXACT or kind.startswith(_DECIMAL))


def _type(field: Field) -> str:
    kind = field.form["type"]
    return kind if isinstance(kind, str) else str(kind["type"])
