"""Waiting until files wait for a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import PokeReturnValue

from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators._base import whole_number_of
from tidemark.operators._constants import check_constants
from tidemark.operators._pipes import choice_of, pipe_of
from tidemark.sensors._deferring import StreamSensor

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.triggers.pipes import PipePendingTrigger

__all__ = ["PipePendingSensor"]


class PipePendingSensor(StreamSensor):
    """Succeeds when a run of the pipe would load files: new ones at its location, or those in its queue. It also
    succeeds for a batch that a run has not finished.

    Lists the location and reads the pipe's queue; never starts a JVM. Never a false "no". Files of a paused pipe do not
    count. A pipe, stage or directory that is gone raises its error at once: waiting would not help. Works with
    `deferrable=True`, where sensors of one location share a listing, and with `mode="reschedule"`. Returns {pipe,
    location, files, first, oldest_at, unfinished}; `first` has five names. Raises PipeNotFound, StageNotFound,
    StageLocationMissing, InvalidArgument.

    :param pipe: name of the pipe. (templated)
    :param at_least: the files that must wait. (templated)
    :param list_files: look for new files; None: if the pipe was created with auto_ingest. (templated)
    :param deferrable: wait in the triggerer; None: the value of `[operators] default_deferrable`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("pipe", "at_least", "list_files", "conn_id")
    ui_color = "#d8eef0"

    def __init__(
        self, *, pipe: str, at_least: int | str = 1, list_files: bool | str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.pipe = pipe
        self.at_least = at_least
        self.list_files = list_files
        check_constants(self, pipe=pipe_of, at_least=whole_number_of, list_files=choice_of)

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether enough files wait now."""
        from tidemark.pipes.worker.pending import PendingLooks, source_of

        hook = TidemarkHook(self.conn_id)
        source = source_of(hook.open_store(), pipe_of("pipe", self.pipe), list_files=self._lists())
        found = PendingLooks(clock=lambda: datetime.now(UTC)).look(source, hook.settings.storage_options)
        self.log.info("Pipe %s: %s files wait%s.", self.pipe, found.count, ", but it is paused" if found.paused else "")
        return PokeReturnValue(found.count >= self._enough() or found.unfinished, xcom_value=found.to_plain())

    def trigger(self, **waiting: Any) -> PipePendingTrigger:
        """Waits in the triggerer."""
        from tidemark.triggers.pipes import PipePendingTrigger

        return PipePendingTrigger(pipe=self.pipe, at_least=self._enough(), list_files=self._lists(), **waiting)

    def _enough(self) -> int:
        return whole_number_of("at_least", self.at_least) or 1

    def _lists(self) -> bool | None:
        return choice_of("list_files", self.list_files)
