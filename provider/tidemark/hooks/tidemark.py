"""The connection type `tidemark`: control store, lake and Spark."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from tidemark.control.store import ControlStore
    from tidemark.hooks._origins import ConnectionExtra
    from tidemark.hooks.settings import TidemarkSettings
    from tidemark.lake.delta_log import DeltaLog
    from tidemark.lake.moved import Finder
    from tidemark.model.streams import TableRef
    from tidemark.streams.worker.limits import JobPaths, RunJob
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["DEFAULT_CONN_ID", "TidemarkHook", "without_secrets"]

DEFAULT_CONN_ID = "tidemark_default"
PATIENCE_OF_METRICS = timedelta(seconds=2)  # a metric is a hint
_OPTIONS = ("lake_root", "control_store", "spark_master", "spark_mode", "driver_environment", "jobs_root")


class TidemarkHook(BaseHook):
    """Settings and control store of one connection.

    The connection `tidemark_default` need not exist. Without it state is in SQLite at `$AIRFLOW_HOME/tidemark.db`,
    tables are under `$TIDEMARK_LAKE_ROOT`, `[tidemark] lake_root` or `$AIRFLOW_HOME/lake`, and Spark runs on
    `local[*]`.

    :param conn_id: Airflow connection of type `tidemark`.
    """

    conn_name_attr = "conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = "tidemark"
    hook_name = "Tidemark"

    def __init__(self, conn_id: str = DEFAULT_CONN_ID) -> None:
        super().__init__()
        self.conn_id = conn_id

    @cached_property
    def settings(self) -> TidemarkSettings:
        """The settings, parsed once. Airflow's masker gets their secrets first.

        Raises AirflowNotFoundException for a missing connection other than the default, and ConnectionUnreadable if it
        is unknown whether it exists. Raises InvalidArgument for one of another type, or whose extra is no JSON object.
        Errors of `settings_from` name the origin of the value.
        """
        from airflow.sdk.configuration import conf

        from tidemark.errors import InvalidArgument, StoreUrlInvalid
        from tidemark.hooks._origins import with_origin
        from tidemark.hooks._secrets import mask_connection
        from tidemark.hooks.settings import settings_from

        said = self._said
        store_url = said.extra.get("control_store") or self._options["control_store"]
        mask_connection(dict(said.extra), password=said.password, store_url=store_url)
        try:
            return settings_from(
                said.extra,
                password=said.password,
                options=self._options,
                home=Path(os.path.expanduser(os.environ.get("AIRFLOW_HOME", "~/airflow"))),  # "~nobody/x" stays
                executor=conf.get("core", "executor", fallback="LocalExecutor"),
            )
        except (InvalidArgument, StoreUrlInvalid) as error:
            raise with_origin(error, said, self._options) from error

    def origin_of(self, name: str) -> str:
        """The origin of the setting `name`, in words: the connection, the environment, or the default."""
        return self._said.origin(name, self._options)

    @cached_property
    def _options(self) -> dict[str, str]:
        return {name: _option(name) for name in _OPTIONS}

    @cached_property
    def _said(self) -> ConnectionExtra:
        from tidemark.hooks._origins import ConnectionExtra, extra_of, refuse_other_type, warn_of_unknown

        connection = self._connection()
        if connection is None:
            return ConnectionExtra(self.conn_id, {}, there=False)
        refuse_other_type(self.conn_id, connection.conn_type, self.conn_type)
        extra = extra_of(connection)
        warn_of_unknown(self.conn_id, frozenset(extra))
        return ConnectionExtra(self.conn_id, extra, connection.password)

    def _connection(self) -> Connection | None:
        """The connection; None for the default one if it does not exist."""
        from tidemark.hooks._missing import found_at_last

        try:
            return self.get_connection(self.conn_id)
        except AirflowNotFoundException:
            found = found_at_last(self.conn_id)
            if found is None and self.conn_id != DEFAULT_CONN_ID:
                raise
            return found

    def open_store(self, *, patience: timedelta | None = None) -> ControlStore:
        """The control store. Opening does no I/O, and only a SQLite store migrates itself on first use. Stored errors
        are masked as Airflow's logs are.

        `patience`: the time for retries of an unreachable server, half a minute by default. Raises StoreUrlInvalid.
        """
        from tidemark.control.store import PATIENCE
        from tidemark.hooks._metrics import names_from

        store = self._store(PATIENCE if patience is None else patience)
        names_from(self.settings.control_store, partial(self._store, PATIENCE_OF_METRICS))
        return store

    def _store(self, patience: timedelta) -> ControlStore:
        from tidemark.control.store import ControlStore

        origin = self.origin_of("control_store")
        return ControlStore(self.settings.control_store, patience=patience, hide=without_secrets, origin=origin)

    def runtime(self, run: RunJob) -> Runtime:
        """The runtime of the worker's steps, with `run` to run their jobs. One also asks Spark's catalog for
        a table that is gone from its path. Raises errors of `open_store`.
        """
        from functools import partial

        from tidemark.hooks._jobs_of_host import JobsOfHost
        from tidemark.streams.worker.catalog import in_the_catalog
        from tidemark.streams.worker.limits import Limits
        from tidemark.streams.worker.runtime import Runtime

        host, limits = JobsOfHost(self.settings), Limits(job_deadline=self.settings.job_deadline)
        runtime = Runtime(self.open_store(), run, self.job_paths(), self.open_table, limits, host)
        return replace(runtime, tables=partial(self._open_table, further=(in_the_catalog(runtime),)))

    def table_uri(self, name: str) -> str:
        """The canonical URI of a table's name (path, ``delta.`path` ``, `schema.table`).

        Raises TableNotFound, InvalidArgument for a place with a password in it.
        """
        from tidemark.hooks._secrets import require_no_password
        from tidemark.lake.tables import resolve

        require_no_password("table", name)
        settings = self.settings
        return resolve(name, settings.lake_root, settings.storage_options, origin=self.origin_of("lake_root"))[0]

    def table_path(self, name: str) -> str:
        """The canonical URI of the table, whether or not it exists. Raises InvalidArgument as `table_uri`."""
        from tidemark.hooks._secrets import require_no_password
        from tidemark.lake.tables import location_of

        require_no_password("table", name)
        return location_of(name, self.settings.lake_root)[0]

    def place_of(self, name: str) -> str | None:
        """The same; None if only a catalog knows the table."""
        from tidemark.sql.table_names import table_name

        return None if table_name(name).only_in_catalog else self.table_path(name)

    def table(self, name: str) -> TableRef:
        """The table with its identity. Raises TableNotFound, NotADeltaTable, InvalidArgument as `table_uri`."""
        from tidemark.hooks._secrets import require_no_password
        from tidemark.lake.tables import table_ref

        require_no_password("table", name)
        settings = self.settings
        return table_ref(name, settings.lake_root, settings.storage_options, origin=self.origin_of("lake_root"))

    def external_table(self, name: str) -> TableRef:
        """The table that a stream on the external table reads. Raises ExternalTableNotFound, InvalidArgument."""
        from tidemark.hooks._secrets import require_no_password
        from tidemark.lake.external_tables import external_table_ref

        require_no_password("on", name)
        return external_table_ref(self.settings.workspace, name, self.settings.storage_options)

    def open_table(self, table: TableRef | str) -> DeltaLog:
        """The log of a registered table or of one by its name. Raises TableNotFound, NotADeltaTable, SourceMoved."""
        return self._open_table(table)

    def _open_table(self, table: TableRef | str, *, further: tuple[Finder, ...] = ()) -> DeltaLog:
        from tidemark.lake.delta_log import DeltaLog
        from tidemark.lake.moved import open_registered
        from tidemark.model.streams import TableRef

        if isinstance(table, TableRef):
            return open_registered(table, (*self._finders(), *further), self.settings.storage_options)
        return DeltaLog.open(self.table_uri(table), self.settings.storage_options)

    def _finders(self) -> tuple[Finder, ...]:
        """The places in which a table is searched that is gone from its path; without a job."""
        from tidemark.lake.moved import below_the_root, beside, by_name
        from tidemark.lake.tables import resolve

        root, options, origin = self.settings.lake_root, self.settings.storage_options, self.origin_of("lake_root")
        named = by_name(lambda name: resolve(name, root, options, origin=origin), options)
        return named, beside(options), below_the_root(root, options)

    def job_paths(self) -> JobPaths:
        """The places of log-only tables, and of files that jobs and worker exchange."""
        from tidemark.streams.worker.limits import JobPaths

        return JobPaths(workspace=self.settings.workspace, exchange=str(self.settings.jobs_root))

    def test_connection(self) -> tuple[bool, str]:
        """The answer of the Test button: whether control store, lake and Spark work, in words.

        Only a Spark Connect server reads and writes a file; any other Spark would need to start a JVM.
        """
        from tidemark.hooks._connection_test import answers

        found = answers(self)
        return all(ok for ok, _ in found), " ".join(text for _, text in found)


def _option(name: str) -> str:
    from airflow.sdk.configuration import conf

    return os.environ.get(f"TIDEMARK_{name.upper()}") or conf.get("tidemark", name, fallback="") or ""


def without_secrets(text: str) -> str:
    """The text, masked as in Airflow's logs."""
    from airflow.sdk.log import redact  # type: ignore[attr-defined]

    return str(redact(text))
