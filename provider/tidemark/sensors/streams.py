"""Waiting until a stream has something to deliver."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark import metrics
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators._base import flag_of, key_of
from tidemark.operators._constants import check_constants
from tidemark.sensors._deferring import StreamSensor

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.hooks.spark_job import SparkJob
    from tidemark.triggers.streams import StreamHasDataTrigger

__all__ = ["StreamHasDataSensor"]


class StreamHasDataSensor(StreamSensor):
    """Succeeds when the stream has unread changes (R120, R123).

    Reads the control store and the source's log, never starts a JVM. Never a false "no"; a "yes" may turn out net to
    nothing, or to change no row of a view. A "no" keeps a stream fresh to whose source nothing was committed (R86). A
    stream that is stale or not there, a recreated or vanished source raise their error at once: waiting would not help.
    Works with `deferrable=True` and `mode="reschedule"`; each look is a fresh one.

    With `exact=True` a Spark job reads what the log calls changed, so a "yes" is one. Changes that cancel each other
    are passed over, unless a run holds the stream. The offset moves past them, with this task and "proven empty" in its
    history, and the wait continues.

    :param stream: name of the stream. (templated)
    :param exact: read the rows before the sensor succeeds, and skip commits that prove to have no change. (templated)
    :param deferrable: wait in the triggerer; None: the value of `[operators] default_deferrable`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("stream", "exact", "conn_id")
    ui_color = "#d8eef0"

    def __init__(self, *, stream: str, exact: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.exact = exact
        self._job: SparkJob | None = None
        check_constants(self, exact=flag_of)

    def poke(self, context: Context) -> bool:
        """Whether there is something to deliver now."""
        from tidemark.streams.worker.has_data import has_data

        hook = TidemarkHook(self.conn_id)
        if flag_of("exact", self.exact):
            found = self._has_rows(hook, context)
        else:
            found = has_data(hook.open_store(), self.stream, tables=hook.open_table)
        metrics.polled(self.stream, found)
        self.log.info("Stream %s %s.", self.stream, "has data" if found else "has nothing new")
        return found

    def trigger(self, **waiting: Any) -> StreamHasDataTrigger:
        """Waits in the triggerer."""
        from tidemark.triggers.streams import StreamHasDataTrigger

        return StreamHasDataTrigger(stream=self.stream, **waiting)

    def execute_complete(self, context: Context, event: dict[str, Any], end: str | None = None) -> Any:
        """The log has changes. If they cancel each other, the sensor passes over them, and waits until its end."""
        found = super().execute_complete(context, event, end)
        if end is None or not flag_of("exact", self.exact) or self._first_look(context):
            return found
        return self.wait_until(datetime.fromisoformat(end))

    def returned(self, value: Any) -> None:
        """Nothing, as on a worker: what is there is for the consumer to read from the store."""

    def on_kill(self) -> None:
        """End the job that reads the rows, if it runs."""
        if self._job is not None:
            self._job.cancel()

    def _has_rows(self, hook: TidemarkHook, context: Context) -> bool:
        from tidemark.hooks.spark_job import SparkJob
        from tidemark.operators._jobs import holds_rows
        from tidemark.streams.worker.has_data import has_rows

        key, self._job = key_of(context), SparkJob(hook.settings)
        runtime = hook.runtime(self._job.run)
        return has_rows(
            runtime.store,
            self.stream,
            holds_rows=lambda window: holds_rows(runtime, window, key=key),
            pass_as=str(key),
            tables=runtime.tables,
        )
