"""Notifications about channels that are silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.notifications._telling import TellingNotifier
from tidemark.operators._base import hours_of
from tidemark.operators._constants import check_constants
from tidemark.operators._replication import names_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.channels.worker.idle import IdleChannel

__all__ = ["ChannelIdleNotifier"]


class ChannelIdleNotifier(TellingNotifier):
    """Reports channels that have committed neither rows nor tokens for `idle_hours`.

    It is for callbacks of tasks and DAGs, and for deadlines (`AsyncCallback(ChannelIdleNotifier, kwargs={…})`). In the
    triggerer it checks tables in a thread. It logs a warning, and passes the result to the notifier `tell`. The
    templates of that have `idle_message` (a text, one line per channel) and `idle_channels` (IdleChannel, the longest
    first). It reports nothing if no channel is idle. A second call checks and reports again.

    :param tables: the tables, by name: a list, or text with commas; None: all of the lake. (templated)
    :param idle_hours: hours without a row or a token. (templated)
    :param tell: dotted path of one of Airflow's notifier classes; None: only the log.
    :param tell_kwargs: its arguments, plain values. Its own templates are rendered with the report, and know
        `idle_message` and `idle_channels`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    :param context: the context that Airflow passes when it calls the notifier in the triggerer; leave it out.
    """

    template_fields: Sequence[str] = ("tables", "idle_hours", "conn_id")

    def __init__(
        self,
        *,
        tables: str | Sequence[str] | None = None,
        idle_hours: float | str = 24.0,
        tell: str | None = None,
        tell_kwargs: Mapping[str, Any] | None = None,
        conn_id: str = DEFAULT_CONN_ID,
        context: Context | None = None,
    ) -> None:
        super().__init__(tell=tell, tell_kwargs=tell_kwargs, conn_id=conn_id, context=context)
        self.tables = tables
        self.idle_hours = idle_hours
        check_constants(self, tables=names_of, idle_hours=hours_of)

    def report(self, context: Context) -> Mapping[str, Any] | None:
        """Checks tables. Raises TableNotFound, InvalidArgument, StorageUnreachable."""
        idle = self._look()
        if not idle:
            self.log.info("No channel is idle.")
            return None
        message = "\n".join(str(one) for one in idle)
        self.log.warning("%s", message)
        return {"idle_message": message, "idle_channels": list(idle)}

    def _look(self) -> tuple[IdleChannel, ...]:
        from tidemark.channels.worker.idle import idle_channels
        from tidemark.channels.worker.tables import channels_of
        from tidemark.hooks.channels import channels_in_lake

        hook, limit = TidemarkHook(self.conn_id), hours_of("idle_hours", self.idle_hours)
        named = {name: channels_of(hook.open_table(name), name) for name in names_of("tables", self.tables)}
        return idle_channels(named or channels_in_lake(hook), longer_than=limit, now=datetime.now(UTC))
