"""Materialized views and dynamic tables, refreshed by their lag and when their bases have changed.

A run starts every minute. It refreshes the dynamic tables that would exceed their target lag, and the materialized
views whose bases have changed. An event of an asset in `BASES` refreshes every view with changed bases, without regard
to its lag. All views of a run show one point in time.

`plan` sorts the views into levels. No view of a level reads another view of the same level. `refresh` maps over the
levels, one after the other, with one job each. A failed refresh stops only the views that read the failed one. Its
error is in the log, in `airflow tidemark views list` and on the page. The next run tries again.

Create the views by CreateDynamicTableOperator and CreateMaterializedViewOperator, or in a notebook. A DAG that is
scheduled on `view_asset("schema.view")` starts when that view was refreshed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Asset, AssetAlias, AssetOrTimeSchedule, CronTriggerTimetable

from tidemark.assets import REFRESHED_VIEWS
from tidemark.operators.refresh_views import RefreshDueViewsOperator

BASES = Asset("landing_orders_loaded")  # of load_files; add the assets of your own bases with |
START = datetime(2026, 1, 1, tzinfo=UTC)

with DAG(
    "refresh_views",
    description="Refreshes the views that are due, level by level, as of one point in time",
    schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("* * * * *", timezone="UTC"), assets=BASES),
    start_date=START,
    catchup=False,
    max_active_runs=1,  # two runs would wait for each other's views
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:
    plan = RefreshDueViewsOperator(
        task_id="plan",
        plan_only=True,
        if_changed="{{ 'true' if triggering_asset_events else 'false' }}",
    )

    refresh = RefreshDueViewsOperator.partial(
        task_id="refresh",
        max_active_tis_per_dagrun=1,  # a level after the levels before it
        outlets=[AssetAlias(REFRESHED_VIEWS)],  # an event for the asset of each view
    ).expand(level=plan.output)
