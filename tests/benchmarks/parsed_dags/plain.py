"""A DAG of the same shape that knows Airflow alone: sensors, a group, callbacks, a watched asset, a retry policy."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import (
    DAG,
    Asset,
    AssetWatcher,
    BaseHook,
    BaseNotifier,
    BaseOperator,
    BaseOperatorLink,
    BaseSensorOperator,
    ExceptionRetryPolicy,
    PokeReturnValue,
    RetryAction,
    RetryRule,
    TaskGroup,
)
from airflow.sdk.configuration import conf
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import BaseEventTrigger

AIRFLOW = (AirflowException, BaseHook, BaseOperatorLink, MappedOperator, PokeReturnValue, conf)
POLICY = ExceptionRetryPolicy([RetryRule(exception="builtins.ValueError", action=RetryAction.FAIL)])


class Tells(BaseNotifier):
    def notify(self, context: Any) -> None: ...


class Watches(BaseEventTrigger):
    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (f"{__name__}.Watches", {})

    async def run(self) -> Any:
        yield None


class Works(BaseOperator): ...


class Waits(BaseSensorOperator): ...


asset = Asset(name="data", uri="x-data://data", watchers=[AssetWatcher(name="data", trigger=Watches())])
with DAG(
    "plain",
    schedule=[asset],
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 - as many DAGs have it
    on_failure_callback=Tells(),
):
    create = Works(task_id="create", retry_policy=POLICY)
    wait = Waits(task_id="wait")
    stale = Waits(task_id="stale", on_success_callback=Tells())
    consume = Works(task_id="consume", retry_policy=POLICY)
    with TaskGroup("deliver") as deliver:
        begin, append, sql = (Works(task_id=name, retry_policy=POLICY) for name in ("begin", "append", "sql"))
        commit = Works(task_id="commit", outlets=[Asset(name="mine", uri="x-data://mine")], retry_policy=POLICY)
        rollback = Works(task_id="rollback", retry_policy=POLICY)
        begin >> [append, sql] >> commit >> rollback.as_teardown(setups=begin)
    advance = Works(task_id="advance", retry_policy=POLICY)
    drop = Works(task_id="drop", retry_policy=POLICY)
    create >> [wait, stale] >> consume >> deliver >> advance >> drop
