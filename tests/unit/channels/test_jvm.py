"""A process that cannot start a JVM says so, with the way out."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tidemark.channels.driver import jvm
from tidemark.channels.driver.jvm import start_engine
from tidemark.errors import IngestUnavailable
from tidemark.failpoints import KILL_AT, KILL_ONCE
from tidemark.model.driver_environment import NAMES


def test_a_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(IngestUnavailable, match=r"no JVM could be started.*Install Java 17.*ingest service"):
        start_engine({})


@pytest.mark.parametrize("says", ["", "echo 25333;"])
def test_a_java_that_hangs_is_ended_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{says} echo $$ > {tmp_path}/pid; sleep 600\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(IngestUnavailable, match="it hangs, and was ended after 1 seconds"):
        start_engine({}, seconds_to_start=1)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_jvm_gets_the_environment_of_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\nenv > {tmp_path}/environment\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-lake")
    for name in ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_SHOP", "TIDEMARK_CONTROL_STORE", "PGPASSWORD"):
        monkeypatch.setenv(name, "s3cr3t")
    with pytest.raises(IngestUnavailable, match="it ended without output"):
        start_engine({})
    told = (tmp_path / "environment").read_text()
    assert "AWS_ACCESS_KEY_ID=of-the-lake" in told
    assert f"PATH={os.environ['PATH']}" in told
    assert "s3cr3t" not in told


def test_the_points_at_which_tests_kill_a_process_pass() -> None:
    assert {KILL_AT, KILL_ONCE} < NAMES


def test_a_pyspark_without_jars_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    monkeypatch.setattr(pyspark, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(IngestUnavailable, match=r"pyspark-client.*Install pyspark"):
        start_engine({})


def test_jars_that_cannot_be_fetched_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "_PACKAGE", ("io.delta", "delta-kernel-defaults", "0.0.0"))
    with pytest.raises(IngestUnavailable, match="could not be fetched"):
        start_engine({}, ivy=tmp_path)
