"""The answers of the Test button: control store, lake and Spark, each in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from airflow.providers.common.compat.sdk import redact
from airflow.sdk.exceptions import AirflowNotFoundException

from tidemark.errors import TidemarkError, from_record
from tidemark.model.jobs import JobSpec
from tidemark.model.probe import PROBE, ProbeRequest

if TYPE_CHECKING:
    from tidemark.control.store import ControlStore
    from tidemark.hooks.settings import TidemarkSettings
    from tidemark.streams.worker.limits import JobPaths

__all__ = ["answers"]

_PROBE_TAKES_AT_MOST = timedelta(minutes=3)
_STORE_IS_TRIED_FOR = timedelta(seconds=3)


class _Connected(Protocol):
    """The parts of the hook that are tried."""

    @property
    def settings(self) -> TidemarkSettings: ...

    def open_store(self, *, patience: timedelta | None = None) -> ControlStore: ...

    def job_paths(self) -> JobPaths: ...


def answers(hook: _Connected) -> list[tuple[bool, str]]:
    """(well, sentence) for the control store, the lake as this process sees it, and Spark; without a secret."""
    return [(well, str(redact(sentence))) for well, sentence in _answers(hook)]


def _answers(hook: _Connected) -> list[tuple[bool, str]]:
    try:
        settings = hook.settings
    except (TidemarkError, AirflowNotFoundException) as error:
        return [(False, str(error))]
    lake = f"Lake {settings.lake_root}"
    checks: list[tuple[str, Callable[[_Connected], str]]] = [
        ("Control store", _store),
        (lake, _lake),
        ("Spark", _spark),
    ]
    return [_checked(hook, subject, check) for subject, check in checks]


def _checked(hook: _Connected, subject: str, check: Callable[[_Connected], str]) -> tuple[bool, str]:
    try:
        return True, f"{subject}: {check(hook)}."
    except (TidemarkError, AirflowNotFoundException, OSError, ImportError) as error:
        return False, f"{subject}: NOT OK. {str(error).rstrip('.')}."


def _store(hook: _Connected) -> str:
    hook.open_store(patience=_STORE_IS_TRIED_FOR).read(lambda connection: None)
    return "reached"


def _lake(hook: _Connected) -> str:
    """A sentence about the lake, after one file was written, read and removed."""
    import fsspec

    from tidemark.lake.failures import storage_errors_named

    settings = hook.settings
    probe = f"{settings.workspace}/probe"
    with storage_errors_named(probe):
        filesystem, directory = fsspec.core.url_to_fs(probe, **settings.storage_options)
        file = f"{directory}/{uuid4().hex}"
        filesystem.makedirs(directory, exist_ok=True)
        filesystem.pipe_file(file, b"tidemark")
        read = filesystem.cat_file(file)
        filesystem.rm(file)
    if read != b"tidemark":
        raise OSError(f"{file} has another content than was written")
    return "written and read"


def _spark(hook: _Connected) -> str:
    from tidemark.hooks._submission import master_of, spark_connection
    from tidemark.hooks.connect_driver import is_connect, server_address
    from tidemark.hooks.spark_job import SparkJob

    settings = hook.settings
    job = SparkJob(settings)
    job.require_ready()
    connection = spark_connection(settings.spark_conn_id, settings.spark_master)
    if job.in_cluster:
        since = job.cluster.manager.started_at()
        return (
            f"{job.cluster.name} answers, and runs since {since:%Y-%m-%d %H:%M} UTC; this test starts no driver there"
        )
    if not is_connect(connection):
        return f"Java and spark-submit are installed for {master_of(connection)}; this test does not start them"
    result = job.run(_probe(hook))
    if result.error is not None:
        raise from_record(result.error)
    version = PROBE.reported(result).spark
    return f"{version} at {server_address(connection)} reads what the worker writes, and the worker what it writes"


def _probe(hook: _Connected) -> JobSpec:
    deadline = datetime.now(UTC) + _PROBE_TAKES_AT_MOST
    return hook.job_paths().spec(PROBE, str(uuid4()), ProbeRequest(), store_id="", deadline=deadline, key=None)
