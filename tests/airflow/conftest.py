"""Airflow in a home of its own, made before Airflow is imported; DAGs run by `dag.test()` with the real task runner."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

HOME = Path(tempfile.mkdtemp(prefix="tidemark-airflow-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    TIDEMARK_SPARK_MASTER="local[1]",
    TIDEMARK_LAKE_ROOT=str(HOME / "lake"),
)
(HOME / "dags").mkdir()

import pytest  # noqa: E402

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from pyspark.sql import SparkSession

    from tidemark.hooks.tidemark import TidemarkHook


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """Airflow's home with a migrated metadata database."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True, timeout=180)
    return HOME


@pytest.fixture
def run_dag(airflow_home: Path) -> Callable[..., Any]:
    """Registers a DAG that a test has built, runs it, and returns its run."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.collection import update_dag_parsing_results_in_db
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.session import create_session

    def run(dag: DAG, **arguments: Any) -> Any:
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
        return dag.test(**arguments)

    return run


@pytest.fixture
def hook(airflow_home: Path) -> TidemarkHook:
    """The hook with no connection defined."""
    from tidemark.hooks.tidemark import TidemarkHook

    return TidemarkHook()


@pytest.fixture(scope="session")
def spark(airflow_home: Path) -> Iterator[SparkSession]:
    """Makes the tables that streams read, and reads what jobs wrote; jobs have a Spark of their own."""
    from tidemark.testing import local_spark

    session = local_spark(warehouse=HOME / "warehouse", cores=1, memory="1g")
    yield session
    session.stop()


@pytest.fixture
def spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a shell script in the place of spark-submit; it keeps a record of having been started."""

    def stand_in(script: str) -> Path:
        started = tmp_path / "started"
        binary = tmp_path / "bin" / "spark-submit"
        binary.parent.mkdir(exist_ok=True)
        binary.write_text(f'#!/bin/bash\necho "$@" >> {started}\nspec="${{@: -1}}"\n{script}\n')
        binary.chmod(0o755)
        monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
        return started

    return stand_in
