"""Parsing a DAG that uses everything of Tidemark's imports nothing heavy; the benchmark has the milliseconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.dag_parse import FILES, environment, parse

pytestmark = pytest.mark.airflow

DAGS = Path(__file__).parents[2] / "dags"


def test_parsing_imports_nothing_heavy_that_airflow_does_not(tmp_path: Path) -> None:
    _, plain = parse(str(tmp_path), FILES["plain"])
    _, ours = parse(str(tmp_path), FILES["every_operator"])
    assert ours - plain == set()


@pytest.mark.parametrize(
    "operator",
    [
        "from tidemark.operators.stream_sql import StreamSQLOperator as Made; more = {}",
        "from tidemark.operators.transaction import WriteStreamOperator as Made; more = {'write_as': 'sql'}",
    ],
)
def test_only_a_statement_that_stands_in_the_file_imports_what_reads_it(tmp_path: Path, operator: str) -> None:
    file = tmp_path / "dag.py"
    made = "Made(task_id='it', sql={!r}, **more)\n"
    file.write_text(operator + "\n" + made.format("it.sql") + made.format("{{ params.sql }}"))
    _, left_to_the_task = parse(str(tmp_path), file)
    file.write_text(operator + "\n" + made.format("INSERT INTO t.copy SELECT * FROM s"))
    _, read = parse(str(tmp_path), file)
    assert read - left_to_the_task == {"sqlglot"}


def test_no_worker_imports_spark_or_a_driver_to_parse_the_projects_dags(tmp_path: Path) -> None:
    names = sorted(file.stem for file in DAGS.glob("*.py"))
    code = f"import sys; sys.path.insert(0, {str(DAGS)!r}); import {', '.join(names)}; print(*sys.modules)"
    parsed = subprocess.run(
        [sys.executable, "-c", code], env=environment(str(tmp_path)), capture_output=True, text=True, check=True
    )
    imported = set(parsed.stdout.splitlines()[-1].split())
    assert {"airflow", "tidemark", *names} <= imported
    assert not imported & {"pyspark", "delta", "psycopg2", "pyarrow", "pandas"}


def test_the_dag_that_is_measured_names_every_operator_sensor_notifier_and_group() -> None:
    import ast

    from tidemark.provider_info import get_provider_info

    used = {node.id for node in ast.walk(ast.parse(FILES["every_operator"].read_text())) if isinstance(node, ast.Name)}
    assert public_names(get_provider_info()) | {"stream_transaction", "stream_data_asset"} <= used


def public_names(info: dict[str, object]) -> set[str]:
    """What the modules that Airflow is told of offer; tasks of a group that its function makes are left to that."""
    from importlib import import_module

    rooms = [info["operators"], info["sensors"]]
    modules = [name for room in rooms for one in room for name in one["python-modules"]]  # type: ignore[attr-defined]
    found = {name for module in modules for name in import_module(module).__all__ if name[0].isupper()}
    made_by_the_group = {"BeginTransactionOperator", "CommitTransactionOperator", "RollbackTransactionOperator"}
    return found - made_by_the_group | {str(name).rpartition(".")[2] for name in info["notifications"]}  # type: ignore[attr-defined]
