"""The password of a source is in nothing that the tasks of a replication leave or say; yet its jobs have it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession

from tests.airflow.replicated_shop import ReplicatedShop
from tests.airflow.runs import Outcome
from tests.airflow.test_replicate_group import replicating
from tests.postgresql import PostgresServer

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
CANARY = "c4n" + "4ry"  # Airflow keeps the source of a DAG, and this is one
PASSWORD = f"{CANARY}@:1/?%2"


@pytest.fixture
def shop(
    source_server: PostgresServer, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ReplicatedShop:
    """Reached by a role whose password is a canary."""
    shop = ReplicatedShop.at(source_server, tmp_path, monkeypatch.setenv, orders=10)
    shop.sql("DROP ROLE IF EXISTS secret_replicator")
    shop.sql(f"CREATE ROLE secret_replicator SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
    connection = json.loads(os.environ["AIRFLOW_CONN_SHOP_DATABASE"])
    given = {**connection, "login": "secret_replicator", "password": PASSWORD}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DATABASE", json.dumps(given))
    return shop


def keep_what_drivers_are_given(started: Path, kept: Path) -> None:
    """The stand-in for spark-submit keeps its spec, its environment and the list of processes, then does as before."""
    kept.mkdir()
    script = started.parent / "bin" / "spark-submit"
    keeping = (
        f'cp "${{@: -1}}" {kept}/$$.spec; cat /proc/[0-9]*/cmdline > {kept}/$$.processes 2>/dev/null; '
        f'printf %s "$TIDEMARK_SOURCE" > {kept}/$$.environment\n'
    )
    first, _, rest = script.read_text().partition("\n")
    script.write_text(f"{first}\n{keeping}{rest}")


def test_a_run_leaves_no_password_in_specs_arguments_logs_xcom_fields_or_the_store(
    run_dag: RunDag,
    shop: ReplicatedShop,
    spark: SparkSession,
    warm_spark: Path,
    airflow_home: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    kept = tmp_path / "kept"
    keep_what_drivers_are_given(warm_spark, kept)
    assert run_dag(replicating(include="shop.orders")).state == "success"
    shop.sql("DELETE FROM shop.orders WHERE id = 1")
    assert run_dag(replicating(include="shop.orders")).state == "success"
    shop.sql("ALTER ROLE secret_replicator PASSWORD 'another'")
    assert run_dag(replicating(include="shop.orders")).state == "failed"  # what libpq says of it is told, too
    said = "".join(capfd.readouterr())
    environments = [file.read_text() for file in kept.glob("*.environment")]
    assert any(CANARY in text for text in environments)
    assert {json.loads(file.read_text())["kind"] for file in kept.glob("*.spec")} == {
        "backfill_object", "capture_events", "apply_events",
    }  # fmt: skip
    places = [file for pattern in ("*.spec", "*.processes") for file in kept.glob(pattern)]
    places += [airflow_home / "airflow.db", *airflow_home.glob("airflow.db-*"), warm_spark]
    places += [file for file in (tmp_path / "lake").rglob("*") if file.is_file()]
    left = {str(file): file.read_bytes() for file in places}
    left |= _tables(tmp_path / "control.db")
    assert sum(name.startswith("table tidemark_") or "replic" in name for name in left) > 3
    assert [name for name, content in left.items() if CANARY.encode() in content] == []
    assert CANARY not in said
    assert re.search(r"password authentication failed|refused", said)


def _tables(store: Path) -> dict[str, bytes]:
    engine = sa.create_engine(f"sqlite:///{store}")
    with engine.connect() as connection:
        names = sa.inspect(engine).get_table_names()
        found = {
            f"table {name}": repr(connection.execute(sa.text(f'SELECT * FROM "{name}"')).fetchall()).encode()
            for name in names
        }
    engine.dispose()
    return found
