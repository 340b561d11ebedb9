"""Tables with a clustering key, reclustered when their files overlap too much.

A table is registered by `ALTER TABLE … CLUSTER BY (…)` in `lake.sql`, by `lake.cluster_by`, or by AutoClusterOperator
with `cluster_by`. `plan` lists the registered tables that are not suspended. `recluster` maps over them, one task for
each table. The log of a table says its depth, so a table within its goal starts no Spark.

Goal and budgets belong to the table. Set them where it is registered, or for all tables of this DAG by the arguments
`depth`, `run_bytes` and `day_bytes`. `airflow tidemark clustering list` shows depth and goal of each table, and
`airflow tidemark clustering history` the bytes that were rewritten for it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from tidemark.operators.auto_cluster import AutoClusterOperator

START = datetime(2026, 1, 1, tzinfo=UTC)

with DAG(
    "keep_tables_clustered",
    description="Reclusters the registered tables whose files overlap too much, within their budgets",
    schedule="*/15 * * * *",
    start_date=START,
    catchup=False,
    max_active_runs=1,  # two runs would rewrite the same files, and one of them for nothing
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:
    plan = AutoClusterOperator(task_id="plan", plan_only=True)

    recluster = AutoClusterOperator.partial(
        task_id="recluster",
        max_active_tis_per_dagrun=2,  # Sparks at once
        map_index_template="{{ task.tables if task.tables is string else (task.tables | join(', ') | truncate(200)) }}",
    ).expand(tables=plan.output)
