"""The common part of the tasks of readers: names of runs, limits and the sink, parsed as templates render them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.operators._base import key_of, unless_left_out, whole_number_of
from tidemark.operators._constants import is_constant

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.change_streams.model.sinks import Sink
    from tidemark.control.store import ControlStore
    from tidemark.model.streams import TableRef

__all__ = ["TaskLimits", "check_sink", "number_of", "run_of", "sink_of", "task_limits"]


def run_of(context: Context) -> str:
    """The DAG run, and how often it was cleared. A partition that failed in it is not handed out before a clear."""
    key = key_of(context)
    cleared = getattr(context.get("dag_run"), "clear_number", 0) or 0
    return f"{key.dag_id}/{key.run_id}" + (f"#{cleared}" if cleared else "")


def number_of(argument: str, value: int | str) -> int:
    """A whole number from 1 on. Raises InvalidArgument."""
    number = whole_number_of(argument, value)
    if number is None:
        raise InvalidArgument(argument=argument, value=value, problem="it must be a whole number from 1 on")
    return number


@dataclass(frozen=True)
class TaskLimits:
    """How chunks are dealt out to tasks. `max_tasks`: Airflow maps over no more."""

    chunks_per_task: int
    rows_per_task: int
    max_chunks: int
    max_rows: int
    max_tasks: int


def task_limits(
    *,
    chunks_per_task: int | str,
    rows_per_task: int | str,
    max_chunks: int | str | None,
    max_rows: int | str,
    max_map_length: int,
) -> TaskLimits:
    """Raises InvalidArgument."""
    from tidemark.change_streams.planning.bundles import most_chunks

    each = number_of("chunks_per_task", chunks_per_task)
    asked = whole_number_of("max_chunks", max_chunks)
    return TaskLimits(
        chunks_per_task=each,
        rows_per_task=number_of("rows_per_task", rows_per_task),
        max_chunks=most_chunks(asked, chunks_per_task=each, max_tasks=max_map_length),
        max_rows=number_of("max_rows", max_rows),
        max_tasks=max_map_length,
    )


def check_sink(write_as: Any, target: Any, keys: Any) -> None:
    """Check the arguments of a sink that are constants. Raises InvalidArgument."""
    from tidemark.change_streams.planning.sinks import keys_of_sink, kind_of_sink

    if is_constant([write_as, target]):
        kind = kind_of_sink(write_as, target)
        if is_constant(keys):
            keys_of_sink(kind, keys)


def sink_of(
    find: Callable[[str], TableRef],
    store: ControlStore,
    change_stream: str,
    *,
    write_as: str,
    target: str | None,
    table: str | None,
    keys: str | Sequence[str],
) -> Sink:
    """The sink with its target's identity. Raises InvalidArgument, MissingMergeKey, ChangeStreamNotFound,
    TargetNotFound, TargetNotDelta.
    """
    from tidemark.change_streams.model.sinks import Sink
    from tidemark.change_streams.worker.sinks import request_sink, require_target, target_of

    asked = request_sink(
        store,
        change_stream,
        write_as=write_as,
        target=unless_left_out(target),
        table=unless_left_out(table),
        keys=unless_left_out(keys) or (),
    )
    place = None if asked.target is None else target_of(find, asked.target)
    require_target(store, change_stream, place, of_table=asked.table_id)
    return Sink(asked.kind, place, asked.table_id, asked.keys, asked.function, asked.alone)
