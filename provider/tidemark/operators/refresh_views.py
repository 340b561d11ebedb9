"""Refreshing materialized views and dynamic tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias
from airflow.sdk.exceptions import AirflowSkipException

from tidemark.assets import REFRESHED_VIEWS
from tidemark.operators._base import LineageMixin, flag_of, key_of, seconds_of
from tidemark.operators._constants import check_constants
from tidemark.operators._deferring import DeferrableOperator
from tidemark.operators._spark import SparkOperator
from tidemark.operators._views import level_of, mode_of, names_of, outlets_of, tell_refreshed, view_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.materialized.model.definitions import RefreshMode
    from tidemark.materialized.model.refreshes import Refreshed
    from tidemark.model.statements import TransactionKey
    from tidemark.operators._base import Lineage
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["RefreshDueViewsOperator", "RefreshViewOperator"]


class RefreshViewOperator(LineageMixin, DeferrableOperator):
    """Refreshes a view, and before it the dynamic tables that it reads, all as of one point in time.

    The logs of the bases decide on the way, and whether a job starts at all. A retry finishes what the last attempt
    began; after the end it changes nothing. If the window since the last refresh cannot be read, all rows are written.
    Returns a list of {view, state, how, why, rows, bytes, seconds, lag, as_of}, the view last; each is the extra of the
    view's asset event. Raises KeptViewNotFound, KeptViewSuspended, StreamLocked while another run refreshes it, and
    TargetChanged if another table is at the kept one's path.

    :param view: name of the view. (templated)
    :param refresh_mode: `auto`, `incremental` or `full` for this refresh; None: the mode of the view. (templated)
    :param skip_when_unchanged: end as skipped, without an asset event, if no base has changed. (templated)
    """

    template_fields: Sequence[str] = ("view", "refresh_mode", "skip_when_unchanged", "conn_id")

    def __init__(
        self,
        *,
        view: str,
        refresh_mode: str | None = None,
        skip_when_unchanged: bool | str = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("outlets", outlets_of(view))
        super().__init__(**kwargs)
        self.view = view
        self.refresh_mode = refresh_mode
        self.skip_when_unchanged = skip_when_unchanged
        check_constants(self, view=view_of, refresh_mode=_asked_mode, skip_when_unchanged=flag_of)

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """The refreshes, the view's own last."""
        from tidemark.materialized.worker.refresh import refresh_view
        from tidemark.streams.model.transaction_jobs import WRITE

        mode = _asked_mode("refresh_mode", self.refresh_mode)
        runtime = self.runtime(leaves=(WRITE,))
        done = refresh_view(runtime, view_of("view", self.view), key=key_of(context), mode=mode)
        _say(self, done)
        if flag_of("skip_when_unchanged", self.skip_when_unchanged) and _nothing_changed(done):
            raise AirflowSkipException(f"No base of {self.view} has changed.")
        return tell_refreshed(context, self, done)

    def keys_left(self, runtime: Runtime, context: Context) -> Collection[TransactionKey]:
        """Those of the refreshes."""
        from tidemark.materialized.worker.refresh import transaction_keys

        key = key_of(context)
        return transaction_keys(runtime.store, str(key), key)

    def planned_lineage(self) -> Lineage | None:
        """None: the bases of a view are known once it is refreshed."""
        return None

    def delivered_lineage(self, key_of_task: Callable[[str | None], TransactionKey]) -> Lineage | None:
        """The windows of the bases, and the kept tables."""
        from tidemark.lineage.refreshes import lineage_of_refreshes

        key, hook = key_of_task(None), self.hook
        return lineage_of_refreshes(hook.open_store(), str(key), key, hook.open_table)


class RefreshDueViewsOperator(LineageMixin, DeferrableOperator):
    """Refreshes the views that are due, in the order in which they read each other.

    A dynamic table is due by its target lag, the time that its refreshes take, and the lag of its readers. A
    materialized view is due if a base has changed. All of a run show one point in time, and the views of a level share
    a job. A view whose refresh fails stops its readers alone. With `plan_only` the task returns the levels, each as
    {wave, level, views, as_of}, and later tasks refresh a `level` each. Retries, the answer and the events are those of
    RefreshViewOperator. The alias `tidemark.refreshed_views` gets an event for the asset of each view. Raises
    RefreshesFailed after the others are done, KeptViewOutdated for a level whose bases were not refreshed before.

    :param views: names of views; None: all. The dynamic tables that they read are refreshed with them. (templated)
    :param level: one level, as a task with `plan_only` has returned it. (templated)
    :param if_changed: a dynamic table is also due if a base has changed, at any lag. (templated)
    :param runs_every_seconds: the time between the runs of the DAG. A table is due if the next run would refresh it too
        late. (templated)
    :param plan_only: plan the levels, and start no job. (templated)
    :param skip_when_unchanged: end as skipped, without an asset event, if nothing is due or has changed. (templated)
    """

    template_fields: Sequence[str] = (
        "views",
        "level",
        "if_changed",
        "runs_every_seconds",
        "plan_only",
        "skip_when_unchanged",
        "conn_id",
    )

    def __init__(
        self,
        *,
        views: str | Sequence[str] | None = None,
        level: Mapping[str, Any] | None = None,
        if_changed: bool | str = False,
        runs_every_seconds: float | str = 60.0,
        plan_only: bool | str = False,
        skip_when_unchanged: bool | str = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("outlets", [] if plan_only is True else [AssetAlias(REFRESHED_VIEWS)])
        super().__init__(**kwargs)
        self.views = views
        self.level = level
        self.if_changed = if_changed
        self.runs_every_seconds = runs_every_seconds
        self.plan_only = plan_only
        self.skip_when_unchanged = skip_when_unchanged
        check_constants(
            self,
            views=names_of,
            level=level_of,
            if_changed=flag_of,
            runs_every_seconds=seconds_of,
            plan_only=flag_of,
            skip_when_unchanged=flag_of,
        )

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """The refreshes; with `plan_only` the levels."""
        from tidemark.materialized.worker.refresh import refresh_due, refresh_level
        from tidemark.streams.model.transaction_jobs import WRITE

        if flag_of("plan_only", self.plan_only):
            return self._levels(context)
        level, key = level_of("level", self.level), key_of(context)
        if level is not None:
            done = refresh_level(self.runtime(leaves=(WRITE,)), *level, key=key)
        else:
            done = refresh_due(self.runtime(leaves=(WRITE,)), key=key, **self._asked())
        _say(self, done)
        if flag_of("skip_when_unchanged", self.skip_when_unchanged) and _nothing_changed(done):
            raise AirflowSkipException("No view was due, or no base has changed.")
        return tell_refreshed(context, self, done)

    def keys_left(self, runtime: Runtime, context: Context) -> Collection[TransactionKey]:
        """Those of the refreshes."""
        from tidemark.materialized.worker.refresh import transaction_keys

        key, level = key_of(context), level_of("level", self.level)
        return transaction_keys(runtime.store, str(key) if level is None else level[0], key)

    def _asked(self) -> dict[str, Any]:
        """The arguments of `plan_due`."""
        return {
            "names": names_of("views", self.views),
            "if_changed": flag_of("if_changed", self.if_changed),
            "runs_every": seconds_of("runs_every_seconds", self.runs_every_seconds),
        }

    def _levels(self, context: Context) -> list[dict[str, Any]]:
        from tidemark.materialized.worker.waves import plan_due

        hook, run = self.hook, str(key_of(context))
        wave = plan_due(hook.open_store(), hook.open_table, run, **self._asked())
        self.log.info("%s levels are due as of %s.", len(wave.levels), wave.as_of.isoformat(timespec="seconds"))
        as_of = wave.as_of.isoformat()
        return [
            {"wave": wave.run, "level": level.number, "views": list(level.views), "as_of": as_of}
            for level in wave.levels
        ]

    def planned_lineage(self) -> Lineage | None:
        """None: the views that are due are known once they are refreshed."""
        return None

    def delivered_lineage(self, key_of_task: Callable[[str | None], TransactionKey]) -> Lineage | None:
        """The windows of the bases, and the kept tables; None for a plan."""
        from tidemark.lineage.refreshes import lineage_of_refreshes

        if flag_of("plan_only", self.plan_only):
            return None
        key, level, hook = key_of_task(None), level_of("level", self.level), self.hook
        run = str(key) if level is None else level[0]
        return lineage_of_refreshes(hook.open_store(), run, key, hook.open_table)


def _asked_mode(argument: str, value: object) -> RefreshMode | None:
    if value is None or str(value).strip().lower() in ("", "none"):
        return None
    return mode_of(argument, value)


def _nothing_changed(done: Sequence[Refreshed]) -> bool:
    return all(one.how is None for one in done)


def _say(operator: SparkOperator, done: Sequence[Refreshed]) -> None:
    for one in done:
        how = one.state.value if one.how is None else one.how.value
        operator.log.info(
            "%s: %s, %s rows and %s bytes in %.1f s, as of %s. %s",
            *(one.view, how, one.rows, one.bytes, one.seconds, one.as_of.isoformat(timespec="seconds"), one.why or ""),
        )
