"""Runs a DAG that was built in memory with the real task runner, for tests and benchmarks alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import DAG


def run_registered(dag: DAG, **arguments: Any) -> Any:
    """Register the DAG, then `dag.test(**arguments)`; returns the run."""
    register(dag)
    return dag.test(**arguments)


def register(dag: DAG) -> None:
    """Put the DAG into Airflow's database, which must be migrated, as the DAG processor does after parsing it.

    Airflow is imported here, so that its home can be set before.
    """
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.collection import update_dag_parsing_results_in_db
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.session import create_session

    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
        session.commit()
        update_dag_parsing_results_in_db(
            bundle_name="dags-folder",
            bundle_version=None,
            dags=[LazyDeserializedDAG.from_dag(dag)],
            import_errors={},
            parse_duration=None,
            warnings=set(),
            session=session,
            files_parsed=set(),
        )
