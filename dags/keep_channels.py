"""Every night: the files of landing tables are compacted, and channels that nobody has used for a month are removed.

The parameter `tables` names the tables. By default they are all tables of the lake that have channels.

On S3, commits of two drivers at once may be lost. Tables there are passed over without `only_writer`, unless a log
store in the settings of Spark coordinates commits. The log of the task `keep` has the reason. The task is skipped if no
table is left.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Param, task

from tidemark.hooks.channels import channel_tables_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.keep_channels import KeepChannelsOperator

with DAG(
    "keep_channels",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@daily",
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    params={
        "tables": Param([], type="array", description="Tables to keep; none: all with channels"),
        "only_writer": Param(False, type="boolean", description="Nobody else writes them now; a lake on S3 needs that"),
    },
    doc_md=__doc__,
) as dag:

    @task.short_circuit
    def tables_with_channels(params: dict[str, Any]) -> list[str]:
        """The tables to keep; none skips the rest."""
        return list(params["tables"]) or channel_tables_of(TidemarkHook())

    KeepChannelsOperator(
        task_id="keep",
        tables=tables_with_channels(),
        only_writer="{{ params.only_writer }}",
        skip_when_unsafe=True,
    )
