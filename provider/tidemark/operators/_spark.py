"""Operators that run jobs on Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowException

from tidemark.acceleration.planning.settings import factor_of
from tidemark.errors import TidemarkError
from tidemark.links.yarn import show_application
from tidemark.operators._base import TidemarkOperator, key_of, python_path_of
from tidemark.operators._constants import check_constants

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.hooks.spark_job import SparkJob
    from tidemark.model.jobs import Job
    from tidemark.model.source_address import SourceAddress
    from tidemark.model.source_connection import SourceConnection
    from tidemark.model.statements import TransactionKey
    from tidemark.model.streams import TableRef
    from tidemark.model.yarn import YarnApplication
    from tidemark.streams.worker.clusters import DriverGoesOn, LeftDriver
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["SparkOperator"]

_LONGER_THAN_THE_TRIGGER = timedelta(minutes=5)  # which keeps the deadline itself
_WAIT_FAILED = "__fail__"  # the method by which Airflow resumes a task whose trigger failed or is out of time
_FACTOR = "query_acceleration_max_scale_factor"


class SparkOperator(TidemarkOperator):
    """An operator whose jobs end with the task: killed, cleared or out of time. Each has words of its own for the
    transaction that is left.

    :param query_acceleration_max_scale_factor: how many more executors may join for each executor of a plain job, while
        tasks wait: 1 to 100. True is 8, and 0 sets no limit; see "Accelerate queries". (templated)
    """

    deferrable = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if _FACTOR not in cls.template_fields:  # a common argument, so no operator has to list it
            cls.template_fields = (*cls.template_fields, _FACTOR)

    def __init__(self, *, query_acceleration_max_scale_factor: bool | int | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.query_acceleration_max_scale_factor = query_acceleration_max_scale_factor
        self._jobs: list[SparkJob] = []
        self._application_page = ""
        self._awaited: LeftDriver | None = None
        self._waits_here = False
        check_constants(self, query_acceleration_max_scale_factor=factor_of)

    def runtime(
        self,
        *,
        functions: bool = False,
        source: SourceAddress | SourceConnection | None = None,
        packages: Sequence[str] = (),
        leaves: Collection[Job[Any, Any]] = (),
    ) -> Runtime:
        """The runtime of this task's steps; to be called inside `execute`.

        `functions`: jobs can import the modules beside the DAG file. `source`: the database or connection that
        they read; `packages`: jars that they need. `leaves`: if the task is `deferrable`, drivers of these kinds that
        run in a cluster end the attempt with DriverGoesOn. The next attempt must ask for the same. Raises SparkNotFound
        at once where no job could be run.
        """
        from tidemark.hooks._acceleration import run_kept
        from tidemark.hooks.cluster_runtime import on_its_cluster
        from tidemark.hooks.spark_job import SparkJob

        path = python_path_of(self) if functions else ()
        factor = factor_of(_FACTOR, self.query_acceleration_max_scale_factor)
        job = SparkJob(self.hook.settings, python_path=path, source=source, packages=packages, factor=factor)
        self._jobs.append(job)
        job.require_ready()

        def show(application: YarnApplication) -> None:
            self._application_page = job.cluster.manager.page_of(application)
            show_application(self._application_page)

        runtime = self.hook.runtime(run_kept(self.hook, job, factor))
        left = [one.name for one in leaves] if self.deferrable and not self._waits_here else ()
        return on_its_cluster(runtime, job, leaves=left, awaited=self._awaited, told=show)

    @property
    def application_page(self) -> str:
        """The page of the newest application in YARN; empty for drivers elsewhere."""
        return self._application_page

    def table_by_name(self, context: Context, name: str, *, anew: bool = True) -> TableRef:
        """The table of that name, with its identity. A job asks Spark's catalog for a name that only it knows.
        Without `anew` it does so once; that is for jobs that check the name.
        """
        from tidemark.streams.worker.catalog import once_in_the_catalog

        hook = self.hook
        find = once_in_the_catalog(
            hook.open_store(),
            hook.table,
            self.runtime,
            connection=self.conn_id,
            tables=hook.open_table,
            key=key_of(context),
            anew=anew,
        )
        return find(name)

    def table_uri(self, context: Context, name: str) -> str:
        """The canonical URI of a table that a statement names: in a retry that of the plan, else as `table_by_name`
        finds it. Raises TableNotFound, InvalidArgument.
        """
        from tidemark.sql.table_names import table_name
        from tidemark.streams.worker.catalog import planned_paths

        if not table_name(name).only_in_catalog:
            return self.hook.table_uri(name)
        planned = planned_paths(self.hook.open_store(), key_of(context, getattr(self, "transaction", None)))
        return planned.get(name) or self.table_by_name(context, name, anew=False).path

    def known_uri(self, name: str) -> str:
        """As `table_uri`, without a job. Raises InvalidArgument for a table that no job has found in a catalog yet."""
        from tidemark.sql.table_names import table_name
        from tidemark.streams.worker.catalog import known_to_the_store

        meant = table_name(name)
        known = known_to_the_store(self.hook.open_store(), self.conn_id, meant.text) if meant.only_in_catalog else None
        return self.hook.table_uri(name) if known is None else known.path

    def turn_on_row_tracking(self, context: Context, table: TableRef) -> None:
        """Run a job that turns row tracking on, if it is off. A second run changes nothing."""
        from tidemark.operators._jobs import turn_on_row_tracking

        if self.hook.open_table(table).state().row_tracking:
            return
        runtime = self.runtime()
        self.log.info("Turning on row tracking on %s; this makes commits on the table.", table.name)
        turn_on_row_tracking(runtime, table, key=key_of(context))

    def cancel_job(self) -> None:
        """End the job that runs, with all of its processes. A task may have several, one after the other."""
        for job in self._jobs:
            job.cancel()

    def on_kill(self) -> None:
        """End the job that runs; the next attempt continues from the stored state."""
        self.cancel_job()

    def wait_in_the_triggerer(self, left: DriverGoesOn, context: Context) -> NoReturn:
        """Defer until the application of the driver has ended; then the attempt begins again, and finds it."""
        from tidemark.hooks.yarn_job import GRACE
        from tidemark.triggers.yarn import YarnApplicationTrigger

        end, manager = left.deadline + GRACE, self._jobs[-1].cluster.manager
        self.log.info("Waiting in the triggerer for the application %s.", left.application)
        self.defer(
            trigger=YarnApplicationTrigger(
                application=left.application,
                job_id=left.job_id,
                addresses=manager.addresses,
                end=end.isoformat(),
                conn_id=self.conn_id,
                user=manager.user,
                own=left.own,
            ),
            method_name="continue_after_wait",
            timeout=self._longest_wait(end, context, datetime.now(UTC)),
        )

    def _longest_wait(self, end: datetime, context: Context, now: datetime) -> timedelta:
        """Until after the end of the trigger, or as long as `execution_timeout` leaves: Airflow counts that on workers
        alone.
        """
        longest = max(end - now, timedelta()) + _LONGER_THAN_THE_TRIGGER
        if self.execution_timeout is None:
            return longest
        return min(longest, max(context["ti"].start_date + self.execution_timeout - now, timedelta()))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """As Airflow's. A wait in the triggerer that failed ends its driver, as a person would."""
        if next_method == _WAIT_FAILED:
            self._end_left(context)
        return super().resume_execution(next_method, next_kwargs, context)

    def keys_left(self, runtime: Runtime, context: Context) -> Collection[TransactionKey]:
        """The keys of the jobs that the task may have left."""
        return (key_of(context),)

    def _end_left(self, context: Context) -> None:
        """As well as it can be: the failure of the wait is the one to be seen."""
        from tidemark.streams.worker.left_drivers import end_left

        try:
            runtime = self.runtime()
            for key in self.keys_left(runtime, context):
                end_left(runtime, key)
        except (TidemarkError, AirflowException) as error:
            self.log.warning("The driver in YARN could not be ended: %s", error)

    def continue_after_wait(self, context: Context, event: dict[str, Any]) -> Any:
        """The trigger has fired. The attempt begins again: it finds its driver, and takes the report.

        `awaited` of the event is the job whose failure is that of this attempt. It is None for a driver that an earlier
        attempt has left. If YARN refuses the triggerer, the task would come back at once. So it waits on its worker.
        """
        self.log.info("Application %s: %s, %s.", event["application"], event["status"], event["problem"])
        self._awaited, self._waits_here = _own_of(event), event["status"] == "refused"
        return self.execute(context)


def _own_of(event: dict[str, Any]) -> LeftDriver | None:
    """The driver of this attempt that the trigger has waited for; None if it was that of an earlier attempt."""
    from tidemark.hooks.yarn_job import GRACE
    from tidemark.streams.worker.clusters import LeftDriver

    if event.get("awaited") is None:
        return None
    end = datetime.fromisoformat(event["end"]) if "end" in event else datetime.now(UTC)  # the trigger may be older
    return LeftDriver(event["awaited"], event["application"], event["awaited"], end - GRACE, own=True)
