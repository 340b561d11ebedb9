"""Waiting in the triggerer until an application of YARN has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import TaskInstanceState
from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError
from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark.errors import ApplicationUnknown, ClusterRefused, ClusterUnreachable
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.hooks.yarn import ResourceManager
from tidemark.streams.worker.threads import OwnThreads
from tidemark.triggers._waiting import seconds_of

if TYPE_CHECKING:
    from tidemark.model.yarn import YarnApplication

__all__ = ["YarnApplicationTrigger"]

_THREADS = 8  # of all these triggers: a manager that hangs holds no others
_PATIENCE_OF_STORE = timedelta(seconds=5)

T = TypeVar("T")


class YarnApplicationTrigger(BaseTrigger):
    """Fires once, when the application of a job has ended, or nothing more can be learned; operators with `deferrable`
    defer to it.

    Its event is {status, application, problem, awaited, end}. The status is `ended`, `unknown`, `refused` or `timeout`.
    The task looks for itself then. A manager that does not answer is asked again until `end`, with a warning in the
    log. If a person ends the task, the job's marker is set, and the application is killed.

    :param application: its id.
    :param job_id: the job whose driver it is.
    :param addresses: of YARN's REST interface.
    :param user: who asks it, the worker's; None for that of the triggerer.
    :param own: whether the attempt has started the driver. Then `awaited` of the event is the job, else None.
    :param end: ISO 8601 with a zone.
    """

    def __init__(
        self,
        *,
        application: str,
        job_id: str,
        addresses: Sequence[str],
        end: str,
        poll_interval: float = 5.0,
        conn_id: str = DEFAULT_CONN_ID,
        user: str | None = None,
        own: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.application = application
        self.job_id = job_id
        self.addresses = list(addresses)
        self.end = datetime.fromisoformat(end).astimezone(UTC).isoformat()
        self.poll_interval = seconds_of("poll_interval", poll_interval)
        self.conn_id = conn_id
        self.user = user
        self.own = own

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Plain values only; none is a secret."""
        return (
            "tidemark.triggers.yarn.YarnApplicationTrigger",
            {
                "application": self.application,
                "job_id": self.job_id,
                "addresses": self.addresses,
                "end": self.end,
                "poll_interval": self.poll_interval,
                "conn_id": self.conn_id,
                "user": self.user,
                "own": self.own,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event."""
        yield TriggerEvent(await self._wait())  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """The end of the driver, by marker and kill: a person has ended the task. Its lease is given up.

        A task that is still deferred continues in another triggerer, which has taken it over from this one. So nothing
        is done then, nor while its state is unknown. A failure is logged. Airflow gives it little time. So no act waits
        for another, nor for a manager that keeps polls waiting.
        """
        if await self._goes_on():
            return
        kill = partial(self._manager.kill, self.application)
        acts = (partial(_set_marker, self.conn_id, self.job_id), kill, partial(_give_up, self.conn_id, self.job_id))
        threads = OwnThreads("tidemark-yarn-end", most=len(acts))
        ends = [asyncio.wrap_future(threads.submit(act)) for act in acts]
        for failure in await asyncio.gather(*ends, return_exceptions=True):
            if failure is not None:
                self.log.warning("A part of the end of %s failed: %s", self.application, failure)

    async def _goes_on(self) -> bool:
        """Whether the task is still deferred, or perhaps is: Airflow does not answer."""
        if self.task_instance is None:
            return False
        try:
            state = await asyncio.wrap_future(OwnThreads("tidemark-yarn-state", most=1).submit(self._state_of_task))
        except (AirflowException, AirflowRuntimeError, OSError, RuntimeError) as error:
            self.log.warning("The driver %s is left: the state of its task is unknown: %s", self.application, error)
            return True
        if state == TaskInstanceState.DEFERRED:
            self.log.info("The driver %s is left: another triggerer waits for it.", self.application)
        return state == TaskInstanceState.DEFERRED

    def _state_of_task(self) -> str | None:
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        one: Any = self.task_instance
        index = -1 if one.map_index is None else one.map_index
        asked = {"dag_id": one.dag_id, "task_ids": [one.task_id], "run_ids": [one.run_id], "map_index": index}
        states = RuntimeTaskInstance.get_task_states(**asked).get(one.run_id) or {}
        state: str | None = states.get(one.task_id if index < 0 else f"{one.task_id}_{index}")
        return state

    @property
    def _manager(self) -> ResourceManager:
        return ResourceManager(self.addresses, user=self.user)

    async def _wait(self) -> dict[str, Any]:
        manager, end = self._manager, datetime.fromisoformat(self.end)
        while True:
            problem = None
            try:
                found: YarnApplication = await _in_a_thread(partial(manager.application, self.application))
                if found.final:
                    return self._event("ended", found.state)
            except ClusterUnreachable as error:
                problem = str(error)
                self.log.warning("%s", error)
            except ApplicationUnknown as error:
                return self._event("unknown", str(error))
            except ClusterRefused as error:
                return self._event("refused", str(error))
            if datetime.now(UTC) > end:
                return self._event("timeout", problem or "it still runs")
            await asyncio.sleep(self.poll_interval)

    def _event(self, status: str, problem: str) -> dict[str, Any]:
        awaited = self.job_id if self.own else None
        told = {"status": status, "application": self.application, "problem": problem}
        return {**told, "awaited": awaited, "end": self.end}


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="tidemark-yarn")


async def _in_a_thread(act: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_threads(), act)


def _set_marker(conn_id: str, job_id: str) -> None:
    from tidemark.hooks._cluster_files import ClusterFiles

    ClusterFiles(TidemarkHook(conn_id).settings).cancel(job_id)


def _give_up(conn_id: str, job_id: str) -> None:
    from tidemark.streams.worker.left_drivers import give_up_waiting

    give_up_waiting(TidemarkHook(conn_id).open_store(patience=_PATIENCE_OF_STORE), job_id)
