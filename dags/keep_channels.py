"""Every night: the files of landing tables are compacted, and channels that nobody has used for a month are removed.

The parameter `tables` names the tables. By default they are all tables of the lake that have channels.
"""

from __future__ import annotations

from datetime import UTC, datetime

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
    params={"tables": Param([], type="array", description="Tables to keep; none: all with channels")},
    doc_md=__doc__,
) as dag:

    @task.short_circuit
    def tables_with_channels(params: dict[str, list[str]]) -> list[str]:
        """The tables to keep; none skips the rest."""
        return params["tables"] or channel_tables_of(TidemarkHook())

    KeepChannelsOperator(task_id="keep", tables=tables_with_channels())
