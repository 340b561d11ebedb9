"""Queries over the orders, kept as tables: made once, refreshed by their lag, and waited for."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, AssetAlias

from tidemark.assets import REFRESHED_VIEWS
from tidemark.operators.refresh_views import RefreshDueViewsOperator, RefreshViewOperator
from tidemark.operators.views import CreateDynamicTableOperator, CreateMaterializedViewOperator
from tidemark.sensors.views import ViewLagSensor

# [START keep_orders]
with DAG("keep_orders", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule=None) as keep_orders:
    valid = CreateDynamicTableOperator(
        task_id="valid",
        view="kept.valid",
        query="SELECT id, customer, status FROM shop.orders WHERE status <> 'cancelled'",
        target_lag="DOWNSTREAM",
        initialize="on_schedule",
        enable_row_tracking=True,
    )

    per_customer = CreateDynamicTableOperator(
        task_id="per_customer",
        view="kept.per_customer",
        query="SELECT customer, COUNT(*) AS orders FROM kept.valid GROUP BY customer",
        target_lag="DOWNSTREAM",
        initialize="on_schedule",
        cluster_by="customer",
    )

    busy = CreateDynamicTableOperator(
        task_id="busy",
        view="kept.busy",
        query="SELECT customer, orders FROM kept.per_customer WHERE orders > 1",
        target_lag="10 minutes",
    )

    total = CreateMaterializedViewOperator(
        task_id="total", view="kept.total", query="SELECT COUNT(*) AS orders, MAX(id) AS newest FROM shop.orders"
    )

    valid >> per_customer >> busy >> total
# [END keep_orders]

# [START refresh_kept]
with DAG(
    "refresh_kept",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@hourly",
    catchup=False,
    max_active_runs=1,
) as refresh_kept:
    plan = RefreshDueViewsOperator(task_id="plan", plan_only=True, if_changed=True)

    refresh = RefreshDueViewsOperator.partial(
        task_id="refresh", max_active_tis_per_dagrun=1, outlets=[AssetAlias(REFRESHED_VIEWS)]
    ).expand(level=plan.output)
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
        task_id="young", view="kept.busy", at_most="1 hour", deferrable=True, poke_interval=60, timeout=3000
    )

    refresh_total >> young
# [END report_kept]
