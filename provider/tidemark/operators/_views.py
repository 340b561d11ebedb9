"""Arguments and steps that operators of materialized views and dynamic tables share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from tidemark.assets import view_asset
from tidemark.errors import InvalidArgument
from tidemark.operators._base import is_left_out

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from tidemark.materialized.model.definitions import FloatSums, Initialize, RefreshMode, TargetLag
    from tidemark.materialized.model.refreshes import Refreshed

__all__ = [
    "columns_of",
    "facts_of",
    "float_sums_of",
    "initialize_of",
    "lag_of",
    "level_of",
    "mode_of",
    "names_of",
    "outlets_of",
    "query_of",
    "tell_refreshed",
    "view_of",
]


def outlets_of(view: object) -> list[Asset]:
    """The asset of a view whose name is written out; a templated name has none."""
    return [view_asset(view)] if isinstance(view, str) and "{{" not in view else []


def view_of(argument: str, value: str) -> str:
    """The name of a view. Raises InvalidArgument."""
    from tidemark.materialized.planning.names import require_view_name

    require_view_name(value, argument)
    return value.strip()


def names_of(argument: str, value: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of views; None for all, also as a template renders it. Raises InvalidArgument."""
    if value is None or is_left_out(value):
        return None
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise InvalidArgument(argument=argument, value=value, problem="give names of views")
    return tuple(view_of(argument, name) for name in names)


def query_of(argument: str, value: str) -> str:
    """A query. Raises InvalidArgument, StatementRefused."""
    from tidemark.sql.statements import StatementKind, parse_statement

    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(argument=argument, value=value, problem="give one SELECT")
    if parse_statement(value).kind is not StatementKind.SELECT:
        raise InvalidArgument(argument=argument, value=value, problem="a view keeps the rows of a SELECT")
    return value


def columns_of(argument: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Names of columns, one or several. Raises InvalidArgument."""
    names = (value,) if isinstance(value, str) else value
    if not (isinstance(names, list | tuple) and all(isinstance(name, str) and name.strip() for name in names)):
        raise InvalidArgument(argument=argument, value=value, problem="give names of columns")
    return tuple(names)


def mode_of(argument: str, value: object) -> RefreshMode:
    """auto, full or incremental. Raises InvalidArgument."""
    from tidemark.materialized.model.definitions import RefreshMode
    from tidemark.materialized.planning.choices import choice_of

    return choice_of(RefreshMode, argument, value)


def float_sums_of(argument: str, value: object) -> FloatSums:
    """Recomputed or incremental. Raises InvalidArgument."""
    from tidemark.materialized.model.definitions import FloatSums
    from tidemark.materialized.planning.choices import choice_of

    return choice_of(FloatSums, argument, value)


def initialize_of(argument: str, value: object) -> Initialize:
    """on_create or on_schedule. Raises InvalidArgument."""
    from tidemark.materialized.model.definitions import Initialize
    from tidemark.materialized.planning.choices import choice_of

    return choice_of(Initialize, argument, value)


def lag_of(argument: str, value: str | timedelta) -> TargetLag:
    """A target lag. Raises InvalidArgument."""
    from tidemark.materialized.planning.lags import target_lag

    return target_lag(value, argument)


def level_of(argument: str, value: Mapping[str, Any] | None) -> tuple[str, int] | None:
    """The wave and the number of a level, as an earlier task has planned it. Raises InvalidArgument."""
    if value is None:
        return None
    if isinstance(value, Mapping) and isinstance(value.get("wave"), str) and type(value.get("level")) is int:
        return value["wave"], value["level"]
    raise InvalidArgument(
        argument=argument, value=value, problem="give a level that a task with plan_only has returned"
    )


def facts_of(done: Refreshed) -> dict[str, Any]:
    """The refresh in plain values."""
    return {
        "view": done.view,
        "state": done.state.value,
        "how": None if done.how is None else done.how.value,
        "why": done.why,
        "rows": done.rows,
        "bytes": done.bytes,
        "seconds": done.seconds,
        "lag": done.lag_seconds,
        "as_of": done.as_of.isoformat(),
    }


def tell_refreshed(context: Context, operator: BaseOperator, done: Iterable[Refreshed]) -> list[dict[str, Any]]:
    """Attach the facts to the outlets' events: each view's to its own asset, all to any other. An alias gets an event
    for the asset of each view.
    """
    facts = {one["view"]: one for one in map(facts_of, done)}
    own = {view_asset(name).uri: one for name, one in facts.items()}
    events = context["outlet_events"]
    for outlet in operator.outlets:
        if isinstance(outlet, Asset):
            events[outlet].extra = own.get(outlet.uri, {"views": list(facts.values())})
        elif isinstance(outlet, AssetAlias):
            for name, one in facts.items():
                events[outlet].add(view_asset(name), extra=one)
    return list(facts.values())
