"""Notifications about streams that are stale or soon will be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.notifications._telling import TellingNotifier
from tidemark.sensors.stale import check_limit, limit_of, streams_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.streams.worker.risks import RiskReport

__all__ = ["StaleStreamNotifier"]


class StaleStreamNotifier(TellingNotifier):
    """Reports streams that can no longer be read, or soon cannot be. On request it also reports streams that fail again
    and again, or do not move although they have changes.

    It is for callbacks of tasks and DAGs, and for deadlines (`AsyncCallback(StaleStreamNotifier, kwargs={…})`). In the
    triggerer it checks streams in a thread. It logs a warning, and passes the result to the notifier `tell`. The
    templates of that have `stale_message` (a text, one line per stream) and `stale_streams` (StreamRisk, the least time
    first). It reports nothing if no stream is at risk, except with `always`, as for a missed deadline of a watch of
    streams. The message then begins with the late run. A second call checks and reports again.

    :param stream: the stream, or several; None: all of the control store. (templated)
    :param hours_left: the time that must be left, in hours. (templated)
    :param failures: also report streams that have failed this often in a row; None: never. (templated)
    :param unmoved_hours: also report streams with changes that have waited this long while the offset did not move;
        None: never. (templated)
    :param always: report even if no stream is at risk, for the deadline of a watch.
    :param tell: dotted path of one of Airflow's notifier classes; None: only the log.
    :param tell_kwargs: its arguments, plain values. Its own templates are rendered with the report, and know
        `stale_message` and `stale_streams`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    :param context: the context that Airflow passes when it calls the notifier in the triggerer; leave it out.
    """

    template_fields: Sequence[str] = ("stream", "hours_left", "failures", "unmoved_hours", "conn_id")

    def __init__(
        self,
        *,
        stream: str | Sequence[str] | None = None,
        hours_left: float | str = 24.0,
        failures: int | str | None = None,
        unmoved_hours: float | str | None = None,
        always: bool = False,
        tell: str | None = None,
        tell_kwargs: Mapping[str, Any] | None = None,
        conn_id: str = DEFAULT_CONN_ID,
        context: Context | None = None,
    ) -> None:
        super().__init__(tell=tell, tell_kwargs=tell_kwargs, conn_id=conn_id, context=context)
        self.stream = stream
        self.hours_left = hours_left
        self.failures = failures
        self.unmoved_hours = unmoved_hours
        self.always = always
        check_limit(self)

    def report(self, context: Context) -> Mapping[str, Any] | None:
        """Checks streams. Raises StreamNotFound, StoreError, InvalidArgument."""
        report = self._look()
        for name, problem in report.unknown:
            self.log.warning("Could not check stream %s: %s", name, problem)
        if not report.at_risk and not self.always:
            self.log.info("No stream is at risk.")
            return None
        lines = [str(one) for one in report.at_risk] or ["No stream is at risk."]
        message = "\n".join([*_lateness(context), *lines])
        self.log.warning("%s", message)
        return {"stale_message": message, "stale_streams": list(report.at_risk)}

    def _look(self) -> RiskReport:
        from tidemark.streams.worker.risks import risk_report

        hook = TidemarkHook(self.conn_id)
        limit = limit_of(self.hours_left, self.failures, self.unmoved_hours)
        return risk_report(hook.open_store(), streams_of(self.stream), hook.open_table, limit)


def _lateness(context: Any) -> list[str]:
    """A line about the late run, for a deadline's callback, which gets run and deadline from Airflow."""
    deadline, run = context.get("deadline"), context.get("dag_run")
    if not isinstance(deadline, Mapping) or not isinstance(run, Mapping):
        return []
    late = f"The run {run.get('dag_run_id')} of {run.get('dag_id')} has not ended by {deadline.get('deadline_time')}."
    return [late]
