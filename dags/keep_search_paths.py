"""Every quarter of an hour: search tables cover the files that are new.

Tables get search paths by AlterSearchOptimizationOperator, or by ALTER TABLE … ADD SEARCH OPTIMIZATION in a notebook.
The parameter `tables` names the tables. By default they are all that have search paths. Between two runs new files are
read by each search, so rows are never missing. A table without new files starts no job.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Param, task

from tidemark.hooks.search import searched_tables_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.search import KeepSearchPathOperator

with DAG(
    "keep_search_paths",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule=timedelta(minutes=15),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    params={"tables": Param([], type="array", description="Tables to keep; none: all with search paths")},
    doc_md=__doc__,
    tags=["tidemark"],
) as dag:

    @task
    def tables_with_search_paths(params: dict[str, list[str]]) -> list[str]:
        """The tables to keep."""
        return params["tables"] or searched_tables_of(TidemarkHook())

    KeepSearchPathOperator.partial(task_id="keep").expand(table=tables_with_search_paths())
