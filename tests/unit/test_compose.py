"""The compose file is valid, complete and has no password of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FILE = Path(__file__).parents[2] / "docker-compose.yaml"
SECRET = re.compile(r"password|secret|fernet", re.IGNORECASE)
REQUIRED = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"])


def test_it_has_airflow_its_database_and_spark(services: dict[str, Any]) -> None:
    expected = {"postgres", "airflow-init", "airflow-api", "airflow-scheduler", "airflow-dag-processor"}
    assert expected | {"airflow-triggerer", "spark-master", "spark-worker"} == set(services)


def test_a_service_depends_on_services_that_exist(services: dict[str, Any]) -> None:
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)


def test_every_secret_must_be_given(services: dict[str, Any]) -> None:
    settings = {name: text for one in services.values() for name, text in one.get("environment", {}).items()}
    secrets = {name: text for name, text in settings.items() if SECRET.search(name) or "://airflow:" in str(text)}
    assert len(secrets) >= 4
    assert [name for name, text in secrets.items() if not REQUIRED.search(str(text))] == []


def test_ports_are_open_on_this_host_only(services: dict[str, Any]) -> None:
    ports = [port for one in services.values() for port in one.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
