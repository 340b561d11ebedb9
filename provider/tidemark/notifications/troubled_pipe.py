"""Notifications about pipes that need a look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.notifications._telling import TellingNotifier
from tidemark.operators._constants import check_constants
from tidemark.operators._replication import names_of

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["PipeTroubleNotifier"]


class PipeTroubleNotifier(TellingNotifier):
    """Reports pipes that are stalled, whose last files had errors, or that have been paused for over 14 days.

    It is for callbacks of tasks and DAGs, and for deadlines (`AsyncCallback(PipeTroubleNotifier, kwargs={…})`). In the
    triggerer it checks pipes in a thread. It logs a warning, and passes the result to the notifier `tell`. The
    templates of that have `pipe_message` (a text, one line per pipe) and `troubled_pipes` (TroubledPipe, stalled ones
    first). It reports nothing if all pipes are well. A second call checks and reports again.

    :param pipes: the pipes, by name: a list, or text with commas; None: all. (templated)
    :param tell: dotted path of one of Airflow's notifier classes; None: only the log.
    :param tell_kwargs: its arguments, plain values. Its own templates are rendered with the report, and know
        `pipe_message` and `troubled_pipes`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    :param context: the context that Airflow passes when it calls the notifier in the triggerer; leave it out.
    """

    template_fields: Sequence[str] = ("pipes", "conn_id")

    def __init__(
        self,
        *,
        pipes: str | Sequence[str] | None = None,
        tell: str | None = None,
        tell_kwargs: Mapping[str, Any] | None = None,
        conn_id: str = DEFAULT_CONN_ID,
        context: Context | None = None,
    ) -> None:
        super().__init__(tell=tell, tell_kwargs=tell_kwargs, conn_id=conn_id, context=context)
        self.pipes = pipes
        check_constants(self, pipes=names_of)

    def report(self, context: Context) -> Mapping[str, Any] | None:
        """Checks pipes. Raises PipeNotFound, StoreError, InvalidArgument."""
        from tidemark.pipes.worker.health import troubled_pipes

        found = troubled_pipes(TidemarkHook(self.conn_id).open_store(), names_of("pipes", self.pipes))
        if not found:
            self.log.info("No pipe needs a look.")
            return None
        message = "\n".join(str(one) for one in found)
        self.log.warning("%s", message)
        return {"pipe_message": message, "troubled_pipes": list(found)}
