"""The shop's database, replicated into the lake while it is in use: each table by a backfill, then by its changes.

The connection `shop_database` leads to the tables' database: a PostgreSQL, or by type `mysql` a MySQL or MariaDB.
`make demo-replication` starts one, fills it and keeps changing it. Each run captures the transactions since the last
run, and copies new tables, those of a PostgreSQL as of one exact position. Then it applies the captured events to each
target. During a long backfill the next runs capture and apply.

Started by hand with `backfill`, a run copies these tables again. The second DAG only requests backfills, and stops
running ones. The third DAG expires events that are a week old and that every target has.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Param

from tidemark.operators.replication_objects import RequestBackfillOperator
from tidemark.operators.replication_retention import ExpireEventLogOperator
from tidemark.operators.replications import CreateReplicationOperator
from tidemark.task_groups.replicate import replicate

REPLICATION = "shop"
TABLES = Param([], type="array", items={"type": "string"}, description="tables to copy, one a line: shop.orders")

with DAG(
    "replicate_database",
    description="A PostgreSQL, MySQL or MariaDB into the lake: backfill, then change data capture",
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=3,  # a run with a long backfill delays no capture
    allowed_run_types=["scheduled", "manual"],  # a log position has no date, so nothing can be backfilled by date
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    params={"backfill": TABLES},
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:
    create = CreateReplicationOperator(
        task_id="create",
        replication=REPLICATION,
        source_conn_id="shop_database",
        target="replicated",
        include=["shop"],
    )

    create >> replicate(
        "replicate",
        replication=REPLICATION,
        prepare={"backfill": "{{ params.backfill | tojson }}"},
        backfill={"max_active_tis_per_dagrun": 2},
    )

with DAG(
    "replicate_database_backfills",
    description="Requests backfills of tables, or stops them; runs of replicate_database do the work",
    schedule=None,
    params={
        "backfill": TABLES,
        "action": Param("start", enum=["start", "restart", "stop"], description="the action on their backfills"),
    },
    tags=["tidemark", "example"],
) as backfills:
    RequestBackfillOperator(
        task_id="request",
        replication=REPLICATION,
        objects="{{ params.backfill | tojson }}",
        action="{{ params.action }}",
    )

with DAG(
    "replicate_database_retention",
    description="Expires old events of replicate_database that every target has",
    schedule=timedelta(days=1),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params={
        "keep_days": Param(7, type="number", minimum=0, description="how long events are kept at least"),
        "only_writer": Param(False, type="boolean", description="no capture runs beside it; a lake on S3 needs that"),
    },
    tags=["tidemark", "example"],
) as retention:
    ExpireEventLogOperator(
        task_id="expire",
        replication=REPLICATION,
        keep_days="{{ params.keep_days }}",
        only_writer="{{ params.only_writer }}",
    )
