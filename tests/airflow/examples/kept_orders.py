"""Queries over the orders, kept as tables: made once, refreshed by their lag, and waited for."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG

from tidemark.operators.refresh_views import RefreshDueViewsOperator, RefreshViewOperator
from tidemark.operators.views import CreateDynamicTableOperator, CreateMaterializedViewOperator
from tidemark.sensors.views import ViewLagSensor

# [START keep_orders]
with DAG("keep_orders", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule=None) as keep_orders:
    priced = CreateDynamicTableOperator(
        task_id="priced",
        view="kept.priced",
        query="SELECT id, customer, amount FROM shop.orders WHERE amount > 0",
        target_lag="DOWNSTREAM",
        initialize="on_schedule",
        enable_row_tracking=True,
    )

    per_customer = CreateDynamicTableOperator(
        task_id="per_customer",
        view="kept.per_customer",
        query="SELECT customer, COUNT(*) AS orders, SUM(amount) AS amount FROM kept.priced GROUP BY customer",
        target_lag="10 minutes",
    )

    total = CreateMaterializedViewOperator(
        task_id="total",
        view="kept.total",
        query="SELECT COUNT(*) AS orders, SUM(amount) AS amount FROM shop.orders",
        cluster_by=[],
    )

    priced >> per_customer >> total
# [END keep_orders]

# [START refresh_kept]
with DAG(
    "refresh_kept",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@hourly",
    catchup=False,
    max_active_runs=1,
) as refresh_kept:
    plan = RefreshDueViewsOperator(task_id="plan", only_plan=True, if_changed=True)

    refresh = RefreshDueViewsOperator.partial(task_id="refresh", max_active_tis_per_dagrun=1).expand(level=plan.output)
# [END refresh_kept]

# [START report_kept]
with DAG(
    "report_kept",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@daily",
    catchup=False,
    max_active_runs=1,
) as report_kept:
    refresh_total = RefreshViewOperator(task_id="refresh_total", view="kept.total", skip_when_unchanged=False)

    young = ViewLagSensor(
        task_id="young", view="kept.per_customer", at_most="1 hour", deferrable=True, poke_interval=60, timeout=3000
    )

    refresh_total >> young
# [END report_kept]
