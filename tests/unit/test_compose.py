"""The compose file is valid, complete and has no password of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.postgresql import PASSWORD, PostgresServer, postgresql_or_skip
from tidemark.control.store import ControlStore
from tidemark.model.spark import S3_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).parents[2] / "docker-compose.yaml"
SECRET = re.compile(r"password|secret|fernet", re.IGNORECASE)
REQUIRED = re.compile(r"\$\{[A-Z0-9_]+:\?[^}]+\}")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"])


@pytest.fixture
def first_started() -> Iterator[PostgresServer]:
    """A server without a role or a database of ours: these belong to the whole server, which tests share elsewhere."""
    with postgresql_or_skip() as server:
        yield server


def test_it_has_airflow_its_database_and_spark(services: dict[str, Any]) -> None:
    expected = {"postgres", "airflow-init", "airflow-api", "airflow-scheduler", "airflow-dag-processor"}
    spark = {"spark-master", "spark-worker", "spark-connect"}
    assert expected | {"airflow-triggerer", "ingest", "s3"} | spark == set(services)


def test_every_service_that_stays_is_watched_and_started_again(services: dict[str, Any]) -> None:
    staying = {name: one for name, one in services.items() if name != "airflow-init"}
    assert [name for name, one in staying.items() if "healthcheck" not in one] == []
    assert {one["restart"] for one in staying.values()} == {"unless-stopped"}


def test_a_service_depends_on_services_that_exist(services: dict[str, Any]) -> None:
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)


def test_every_secret_must_be_given(services: dict[str, Any]) -> None:
    settings = {name: text for one in services.values() for name, text in one.get("environment", {}).items()}
    secrets = {name: text for name, text in settings.items() if SECRET.search(name) or "postgres/" in str(text)}
    assert len(secrets) >= 6
    assert [name for name, text in secrets.items() if not REQUIRED.search(str(text))] == []


def test_the_first_start_makes_a_control_store_that_can_be_migrated(
    first_started: PostgresServer, tmp_path: Path
) -> None:
    """The script that PostgreSQL's image runs, run here as it runs there."""
    script = tmp_path / "control-store.sh"
    content: str = yaml.safe_load(FILE.read_text(encoding="utf-8"))["configs"]["control-store.sh"]["content"]
    script.write_text(content.replace("$$", "$"))
    server = {"PGHOST": "127.0.0.1", "PGPORT": str(first_started.port), "PGUSER": "postgres", "PGPASSWORD": PASSWORD}
    given = {"POSTGRES_USER": "postgres", "TIDEMARK_PASSWORD": PASSWORD}
    path = f"{first_started.programs}:{os.environ['PATH']}"
    subprocess.run(["bash", str(script)], check=True, env={**os.environ, **server, **given, "PATH": path}, timeout=60)
    store = ControlStore(first_started.url("tidemark", user="tidemark"))
    store.migrate()
    store.require_revision()


def test_ports_are_open_on_this_host_only(services: dict[str, Any]) -> None:
    ports = [port for one in services.values() for port in one.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_a_spark_of_its_own_has_the_file_system_of_its_lake(services: dict[str, Any]) -> None:
    settings = {name: text for one in services.values() for name, text in one.get("environment", {}).items()}
    extras = [json.loads(text)["extra"] for name, text in settings.items() if name.startswith("AIRFLOW_CONN_TIDEMARK")]
    submitting = [extra for extra in extras if extra.get("spark_mode") == "submit"]
    assert submitting
    for extra in submitting:
        assert extra["lake_root"].startswith("s3://")
        known = {**extra["spark_conf"], "spark.jars.packages": extra["spark_packages"]}
        assert {name: known.get(name) for name in S3_SETTINGS} == dict(S3_SETTINGS)


def test_the_connect_server_has_the_file_system_of_the_lake(services: dict[str, Any]) -> None:
    command = services["spark-connect"]["command"]
    given = [one.removeprefix("--conf=").replace("--packages=", "spark.jars.packages=") for one in command]
    assert [f"{name}={value}" for name, value in S3_SETTINGS.items() if f"{name}={value}" not in given] == []
