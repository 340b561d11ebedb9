"""Waiting until the rows of a view are young enough."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import PokeReturnValue

from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators._constants import check_constants
from tidemark.operators._views import lag_of, view_of
from tidemark.sensors._deferring import StreamSensor

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.triggers.views import ViewLagTrigger

__all__ = ["ViewLagSensor"]


class ViewLagSensor(StreamSensor):
    """Succeeds when a view shows a point in time that is young enough.

    Reads the control store alone; never starts a JVM. Works with `deferrable=True` and with `mode="reschedule"`.
    Returns {view, seconds, target_seconds, fresh_at}. A suspended view raises its error at once, since waiting does not
    help. Raises KeptViewNotFound, KeptViewSuspended, InvalidArgument.

    :param view: name of the view. (templated)
    :param at_most: the lag that is young enough, as `10 minutes`; None: the target lag of the view. Without both, the
        first refresh is enough. (templated)
    :param deferrable: wait in the triggerer; None: the value of `[operators] default_deferrable`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("view", "at_most", "conn_id")
    ui_color = "#d8eef0"

    def __init__(self, *, view: str, at_most: str | timedelta | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.view = view
        self.at_most = at_most
        check_constants(self, view=view_of, at_most=_seconds_of)

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether the lag is short enough now."""
        from tidemark.materialized.worker.lags import view_lag
        from tidemark.model.codec import to_plain

        found = view_lag(TidemarkHook(self.conn_id).open_store(), view_of("view", self.view))
        self.log.info("%s is behind by %s seconds.", found.view, found.seconds)
        return PokeReturnValue(found.within(self._most()), xcom_value=to_plain(found))

    def trigger(self, **waiting: Any) -> ViewLagTrigger:
        """Waits in the triggerer."""
        from tidemark.triggers.views import ViewLagTrigger

        return ViewLagTrigger(view=self.view, at_most=self._most(), **waiting)

    def _most(self) -> float | None:
        return _seconds_of("at_most", self.at_most)


def _seconds_of(argument: str, value: str | timedelta | None) -> float | None:
    if value is None or str(value).strip().lower() in ("", "none"):
        return None
    lag = lag_of(argument, value).at_most
    return None if lag is None else lag.total_seconds()
