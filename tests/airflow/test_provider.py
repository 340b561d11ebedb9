"""How Airflow finds the provider, and what a DAG file that uses it loads."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import airflow
import tidemark
from tests.airflow.command_line import run_airflow
from tidemark.provider_info import get_provider_info

pytestmark = pytest.mark.airflow
ROOMS = ("change_streams", "changes", "delivery", "replication", "streams")
FLOORS = [f"tidemark.{room}.{floor}" for room in ROOMS for floor in ("store", "worker", "driver")]
HEAVY = ("pyspark", "delta", "sqlglot", "pyarrow", "alembic", "tidemark.control", "tidemark.lake", *FLOORS)


def test_the_provider_info_fits_airflows_schema() -> None:
    schema = Path(airflow.__file__).with_name("provider_info.schema.json")
    jsonschema.validate(get_provider_info(), json.loads(schema.read_text()))


def test_everything_that_the_provider_info_names_can_be_imported() -> None:
    info: dict[str, Any] = get_provider_info()
    rooms = [room for kind in ("operators", "sensors", "triggers", "hooks") for room in info[kind]]
    for module in (name for room in rooms for name in room["python-modules"]):
        importlib.import_module(module)
    dotted = [info["cli"][0], info["connection-types"][0]["hook-class-name"]]
    dotted += [*info["extra-links"], *info["notifications"]]
    for module, _, attribute in (name.rpartition(".") for name in dotted):
        assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("room", ["operators", "sensors", "triggers"])
def test_the_provider_info_names_every_public_module(room: str) -> None:
    info: dict[str, Any] = get_provider_info()
    files = Path(tidemark.__file__).parent.joinpath(room).glob("[!_]*.py")
    named = {name for entry in info[room] for name in entry["python-modules"]}
    assert named == {f"tidemark.{room}.{file.stem}" for file in files}


def test_the_provider_info_imports_nothing() -> None:
    code = "import sys; before = set(sys.modules); import tidemark.provider_info; print(set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "airflow" not in loaded
    assert "tidemark.model" not in loaded


def test_airflow_lists_the_provider_and_its_connection_type(airflow_home: Path) -> None:
    listed = run_airflow("providers", "list", "--output", "json").stdout
    assert "airflow-provider-tidemark" in {row["package_name"] for row in json.loads(listed)}
    assert "tidemark.hooks.tidemark.TidemarkHook" in run_airflow("providers", "hooks", "--output", "json").stdout


def test_a_dag_file_loads_neither_spark_nor_the_store(airflow_home: Path, tmp_path: Path) -> None:
    dag_file = tmp_path / "dag.py"
    dag_file.write_text(
        textwrap.dedent("""
        from airflow.sdk import DAG
        from tidemark.assets import stream_asset, stream_data_asset
        from tidemark.operators.consume import ConsumeStreamOperator
        from tidemark.operators.streams import AdvanceStreamOperator, CreateStreamOperator, DropStreamOperator
        from tidemark.operators.transaction import WriteStreamOperator
        from tidemark.sensors.streams import StreamHasDataSensor
        from tidemark.task_groups.stream_transaction import stream_transaction

        with DAG("d", schedule=[stream_asset("s"), stream_data_asset("s")]):
            with stream_transaction("g", streams="s") as g:
                WriteStreamOperator(task_id="w", target="t", write_as="append")
            CreateStreamOperator(task_id="c", stream="s", on="o") >> StreamHasDataSensor(task_id="h", stream="s") >> g
            ConsumeStreamOperator(task_id="k", stream="s", target="t", write_as="merge", keys=["id"])
    """)
    )
    code = f"""
import sys
import airflow.sdk
from airflow.sdk import DAG, TaskGroup, Asset, BaseHook, BaseOperator, BaseSensorOperator
before = set(sys.modules)
exec(compile(open({str(dag_file)!r}).read(), {str(dag_file)!r}, "exec"))
added = set(sys.modules) - before
print([name for name in {(*HEAVY, "sqlalchemy")!r} if name in added])
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip().splitlines()[-1] == "[]"
