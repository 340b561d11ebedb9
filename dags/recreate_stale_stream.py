"""A stream that cannot be read any more continues, after a person has seen the loss and approved it.

Trigger it with the stream's name from the alert of `watch_stale_streams`. The run waits under *Required Actions*, for
up to three days. The stream's history names the person who approved. A stream that can be read is left unchanged.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param, task

from tidemark.operators.rebase import RebaseStreamOperator

with DAG(
    "recreate_stale_stream",
    description="Asks a person, then moves a stream that lost its source onto the table that exists now",
    schedule=None,
    catchup=False,
    params={
        "stream": Param("", type="string", minLength=1, description="the stream that cannot be read any more"),
        "conn_id": Param("tidemark_default", type="string", minLength=1, description="its Tidemark connection"),
        "show_initial_rows": Param(False, type="boolean", description="deliver the rows that the table has now"),
    },
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:

    @task
    def what_is_lost(params: dict[str, Any]) -> dict[str, Any]:
        """The problem of the stream, and the changes that it will never deliver; skips if the stream can be read."""
        from airflow.sdk.exceptions import AirflowSkipException

        from tidemark.hooks.tidemark import TidemarkHook
        from tidemark.streams.worker.rebase import loss_of

        hook = TidemarkHook(params["conn_id"])
        found = loss_of(hook.open_store(), params["stream"], tables=hook.open_table)
        if found.problem is None:
            raise AirflowSkipException(f"Stream {found.stream} can be read: nothing to decide.")
        return asdict(found)

    approve = ApprovalOperator(
        task_id="approve",
        subject="Let the stream {{ params.stream }} continue, and lose its unread changes?",
        body="""
{%- set lost = ti.xcom_pull(task_ids="what_is_lost") -%}
**Stream** {{ lost.stream }} on {{ lost.table }} (table id `{{ lost.table_id }}`), at version {{ lost.version }}

**Why** {{ lost.problem }}

**Lost** {{ lost.lost }}

If you approve, the stream continues from the newest version of the present table.
{%- if params.show_initial_rows %} It first delivers the rows of this table.{% endif %}
""",
        response_timeout=timedelta(days=3),
    )

    rebase = RebaseStreamOperator(
        task_id="rebase",
        stream="{{ params.stream }}",
        conn_id="{{ params.conn_id }}",
        show_initial_rows="{{ params.show_initial_rows }}",
        why="""
{%- set said = ti.xcom_pull(task_ids="approve") -%}
approved by {{ said.responded_by_user.name }}: {{ ti.xcom_pull(task_ids="what_is_lost").problem }}""",
    )

    what_is_lost() >> approve >> rebase
