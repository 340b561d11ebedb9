"""The settings of the Airflow connection, parsed once. Without a connection each has a working default."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from tidemark.errors import InvalidArgument, StoreUrlInvalid
from tidemark.hooks._spark_modes import SparkMode
from tidemark.model.foreign_json import parsed, whole_number
from tidemark.model.spark import DELTA_PACKAGE
from tidemark.streams.planning.executors import DEFAULT_BYTES, MOST_BYTES, ExecutorBounds
from tidemark.streams.worker.limits import DEFAULT_LIMITS

__all__ = ["TidemarkSettings", "settings_from"]

_SPARK_BRINGS_DELTA = "-"
_MOST = 10_000
_WEEK = 7 * 86_400  # seconds; pipes remember files for two weeks
_HOUR = 3600  # seconds
_MOST_HOURS = 23  # of a job; what is a day old can be removed
_ENDS_WITH_ITS_TASK = ("AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER")  # set by Airflow's executors
_OF_EACH_PROCESS = "a relative path would lead elsewhere in each process, by its working directory"
_ON_ONE_HOST = ("LocalExecutor", "airflow.executors.local_executor.LocalExecutor")


@dataclass(frozen=True)
class TidemarkSettings:
    """Settings of control store, lake and Spark. Possible secrets (`control_store`, options, Spark settings) are not
    printed.

    `lake_root` is a canonical URI. If `spark_conn_id` is None, jobs run on `spark_master`. `jobs_root`: the local
    directory of job files, which only the worker's user can enter. `driver_environment`: names of the worker's
    variables that a driver gets beside the usual ones. `home`: Airflow's. `keep_history`: tasks delete older history
    from the control store; None if only `db prune` does. `spark_mode`: None follows `usual_spark_mode`, if it
    fits the Spark connection.
    `spark_slots`: jobs at a time in the warm Spark of this host, which ends after `spark_idle` without one. It must
    listen `spark_start` after its start.
    `worker_stays`: whether this host outlives its task. `executors`: the bounds of jobs on a cluster; None leaves their
    number to Spark's settings. `full_listing_seconds`: after them a look for files of a pipe asks for all names, where
    it otherwise continues behind the last one. `job_deadline`: after its order, at which a job stops itself.
    """

    control_store: str = field(repr=False)
    lake_root: str
    home: Path
    jobs_root: Path
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    spark_conn_id: str | None = None
    spark_master: str = "local[*]"
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark_packages: str | None = DELTA_PACKAGE
    spark_mode: SparkMode | None = None
    usual_spark_mode: SparkMode | None = None
    spark_slots: int | None = None
    spark_idle: timedelta = timedelta(minutes=10)
    spark_start: timedelta = timedelta(seconds=180)
    worker_stays: bool = True
    driver_environment: tuple[str, ...] = ()
    keep_history: timedelta | None = None
    executors: ExecutorBounds | None = None
    full_listing_seconds: int = 3600
    job_deadline: timedelta = DEFAULT_LIMITS.job_deadline

    @property
    def workspace(self) -> str:
        """The URI below which log-only tables and job directories are."""
        return f"{self.lake_root}/_tidemark"

    @property
    def ingest_tokens(self) -> Path:
        """The file with the hashes of the ingest service's tokens."""
        return self.home / "tidemark-ingest-tokens.json"

    @property
    def ingest_pipes(self) -> Path:
        """The file with the pipes that the ingest service knows."""
        return self.home / "tidemark-ingest-pipes.json"

    @property
    def former_jobs_roots(self) -> tuple[Path, ...]:
        """The directories of job files of earlier releases, whose leftovers are swept."""
        in_the_lake = self.lake_root.startswith("file://")
        return ((Path(self.workspace.removeprefix("file://")) if in_the_lake else self.home / "tidemark") / "jobs",)


def settings_from(
    extra: Mapping[str, Any], *, password: str | None, options: Mapping[str, str], home: Path, executor: str
) -> TidemarkSettings:
    """The settings in a connection's `extra`, else in the configuration `options`, else the embedded defaults.

    Raises InvalidArgument for a value that does not parse, and a driver environment with forbidden names. The same for
    a relative `home`, and a lake root that is relative or has a password. The same for a SQLite store under an executor
    that spans hosts. Raises StoreUrlInvalid for an invalid store URL.
    """
    from tidemark.hooks._driver_environment import names_from

    _require_absolute(home)
    store = _store_url(_text(extra, "control_store") or options.get("control_store") or None, password)
    _require_one_host(store, executor)
    packages = _text(extra, "spark_packages") or DELTA_PACKAGE
    hours = _number(extra, "job_deadline_hours", most=_MOST_HOURS)
    return TidemarkSettings(
        control_store=store or f"sqlite:///{home / 'tidemark.db'}",
        lake_root=_lake_root(_text(extra, "lake_root") or options.get("lake_root"), home),
        home=home,
        jobs_root=_jobs_root(options.get("jobs_root") or None, home),
        storage_options=_json_object(extra, "storage_options"),
        spark_conn_id=_text(extra, "spark_conn_id"),
        spark_master=options.get("spark_master") or "local[*]",
        spark_conf=_mapping(extra, "spark_conf"),
        spark_packages=None if packages == _SPARK_BRINGS_DELTA else packages,
        spark_mode=_mode(_text(extra, "spark_mode")),
        usual_spark_mode=_mode(options.get("spark_mode") or None),
        spark_slots=_number(extra, "spark_slots"),
        spark_idle=timedelta(minutes=_number(extra, "spark_idle_minutes") or 10),
        spark_start=timedelta(seconds=_number(extra, "spark_start_seconds", most=_HOUR) or 180),
        worker_stays=not any(os.environ.get(name) for name in _ENDS_WITH_ITS_TASK),
        driver_environment=names_from(extra.get("driver_environment") or options.get("driver_environment") or ()),
        keep_history=_length(extra, "keep_history"),
        executors=_executor_bounds(extra),
        full_listing_seconds=_number(extra, "full_listing_seconds", most=_WEEK) or 3600,
        job_deadline=timedelta(hours=hours) if hours else DEFAULT_LIMITS.job_deadline,
    )


def _require_absolute(home: Path) -> None:
    if not home.is_absolute():
        problem = f"it must be an absolute path: {_OF_EACH_PROCESS}"
        raise InvalidArgument(argument="AIRFLOW_HOME", value=str(home), problem=problem)


def _lake_root(given: str | None, home: Path) -> str:
    """The canonical URI of the lake root. Raises InvalidArgument for a password in it, and for a relative path."""
    from tidemark.hooks._secrets import require_no_password
    from tidemark.lake.paths import is_absolute
    from tidemark.lake.storage import canonical_uri

    if not given:
        return canonical_uri(str(home / "lake"))
    require_no_password("lake_root", given)
    path = os.path.expanduser(given)  # of an unknown user it stays as it is
    if not is_absolute(path):
        problem = f"it must be an absolute path or a URI: {_OF_EACH_PROCESS}"
        raise InvalidArgument(argument="lake_root", value=given, problem=problem)
    return canonical_uri(path)


def _jobs_root(given: str | None, home: Path) -> Path:
    """The directory of job files. It is not in the lake, whose writers could change what drivers run. Users that share
    a home have one each.
    """
    if given is None:
        return home / f"tidemark-jobs-{os.getuid()}"
    path = Path(os.path.expanduser(given))  # of an unknown user it stays as it is
    if not path.is_absolute():
        raise InvalidArgument(argument="jobs_root", value=given, problem="it must be an absolute path on the worker")
    return path


def _store_url(url: str | None, password: str | None) -> str | None:
    """The store's URL with the connection's password. Raises StoreUrlInvalid, also for a relative path of SQLite."""
    if url is None:
        return None
    from tidemark.control.urls import SQLITE, parse_url, shown

    found = parse_url(url, password=password or None)
    file = str(found.database)
    if found.get_backend_name() == SQLITE and not file.startswith("file:") and not os.path.isabs(file):
        raise StoreUrlInvalid(url=shown(found), problem=f"{_OF_EACH_PROCESS}; name sqlite:////absolute/path.db")
    return found.render_as_string(hide_password=False)


def _require_one_host(url: str | None, executor: str) -> None:
    if url is not None and not url.startswith("sqlite"):
        return
    spread = [name for name in _executors(executor) if not _runs_on_one_host(name)]
    if spread:
        raise InvalidArgument(
            argument="control_store",
            value=url or "SQLite (the default)",
            problem=f"a SQLite control store is a file on one host, but {', '.join(spread)} spreads tasks over hosts. "
            "Name a PostgreSQL store in the connection",
        )


def _executors(setting: str) -> list[str]:
    """The names or classes in `[core] executor`: `LocalExecutor,alias:my.Executor;team=CeleryExecutor`."""
    teams = (group.rpartition("=")[2] for group in setting.split(";"))
    return [name.strip().rpartition(":")[2] for group in teams for name in group.split(",") if name.strip()]


def _runs_on_one_host(executor: str) -> bool:
    """Whether an executor runs on one host. A user's own class does only if it can be imported and declares so."""
    if executor in _ON_ONE_HOST:
        return True
    module, _, name = executor.rpartition(".")
    try:
        return bool(module) and getattr(importlib.import_module(module), name).is_local is True
    except (ImportError, AttributeError, TypeError, ValueError):  # of ".x" and the like, too
        return False


def _mode(text: str | None) -> SparkMode | None:
    try:
        return None if text is None else SparkMode(text.lower())
    except ValueError:
        problem = f"it must be one of {', '.join(mode.value for mode in SparkMode)}, or empty"
        raise InvalidArgument(argument="spark_mode", value=text, problem=problem) from None


def _executor_bounds(extra: Mapping[str, Any]) -> ExecutorBounds | None:
    """The bounds of executors; None without any. Raises InvalidArgument for bounds without an upper one."""
    most = _number(extra, "max_executors")
    least, size = _number(extra, "min_executors"), _number(extra, "bytes_per_executor", most=MOST_BYTES)
    if most is not None:
        return ExecutorBounds(most, least or 1, size or DEFAULT_BYTES)
    if least is not None or size is not None:
        problem = "it is needed beside min_executors and bytes_per_executor"
        raise InvalidArgument(argument="max_executors", value="(empty)", problem=problem)
    return None


def _number(extra: Mapping[str, Any], name: str, *, most: int = _MOST) -> int | None:
    text = _text(extra, name)
    if text is None:
        return None
    number = whole_number(text)
    if number is None or not 0 < number <= most:
        raise InvalidArgument(argument=name, value=text, problem=f"it must be a whole number from 1 to {most}")
    return number


def _text(extra: Mapping[str, Any], name: str) -> str | None:
    value = extra.get(name)
    return str(value).strip() or None if value is not None else None


def _length(extra: Mapping[str, Any], name: str) -> timedelta | None:
    from tidemark.streams.planning.history import keep_of

    text = _text(extra, name)
    return None if text is None else keep_of(name, text)


def _mapping(extra: Mapping[str, Any], name: str) -> Mapping[str, str]:
    return {key: _plain_text(entry) for key, entry in _json_object(extra, name).items()}


def _json_object(extra: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A JSON object of the extra. Its values may be objects and numbers, as fsspec's options are."""
    value = extra.get(name) or {}
    try:
        found = parsed(value) if isinstance(value, str) else value
        return {str(key): entry for key, entry in found.items()}
    except (ValueError, AttributeError) as error:
        raise InvalidArgument(argument=name, value="(not shown)", problem="it must be a JSON object") from error


def _plain_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
