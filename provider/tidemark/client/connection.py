"""Connecting a client."""

from __future__ import annotations

import atexit
import getpass
import os
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.client.catalog import SparkTables
from tidemark.client.context import ClientContext
from tidemark.client.lake import Lake
from tidemark.client.sessions import ClientSession
from tidemark.client.source_addresses import addresses_of, hides
from tidemark.control.store import ControlStore, utc_now
from tidemark.jobs.workspace import Workspace
from tidemark.lake.paths import is_absolute
from tidemark.model.source_address import SourceAddress
from tidemark.results.model.answers import DEFAULT_RULES, ReuseRules
from tidemark.streams.worker.limits import DEFAULT_LIMITS, JobPaths, Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["connect"]


def connect(
    spark: SparkSession | Callable[[], SparkSession],
    control_store: str,
    *,
    lake_root: str | None = None,
    clock: Callable[[], datetime] = utc_now,
    storage_options: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    who: str | None = None,
    sources: Mapping[str, SourceAddress | str] | None = None,
    session_settings: Mapping[str, str] | None = None,
    use_cached_result: bool = True,
    reuse_rules: ReuseRules = DEFAULT_RULES,
) -> Lake:
    """A client for a notebook, a script or a test.

    `spark`: a session, or a function that starts one, which is called at the first use of Spark. `session_settings` are
    set on it. `control_store`: SQLAlchemy URL; an SQLite one creates itself. `lake_root`: the root of `schema.table` if
    Spark's catalog does not know it, and of the working directory `_tidemark/` (default: a temporary directory). A
    relative one means that of now, also after `chdir`. `storage_options`: of fsspec, for tables in an object store.

    `clock` gives aware UTC times. `limits`: of leases and jobs. `who` is the actor in the history of manual moves
    (default: the user's name). `use_cached_result`, `reuse_rules`: whether and how `lake.query` reuses answers.
    `sources`: the databases of replications by name, each as an address or a URL, `postgresql://user:password@host/db`.

    Raises InvalidArgument for another URL; StoreUnreachable and StoreNotMigrated at the first use.
    """
    if lake_root is not None and not is_absolute(lake_root := os.path.expanduser(lake_root)):
        lake_root = os.path.abspath(lake_root)
    options, addresses = dict(storage_options or {}), addresses_of(sources)
    store = ControlStore(control_store, clock=clock, hide=hides(addresses))
    root = f"{(lake_root or tempfile.mkdtemp(prefix='tidemark-')).rstrip('/')}/_tidemark"
    if "://" not in root:
        root = str(Path(root).absolute())
    session = ClientSession(spark, session_settings or {})
    workspace = Workspace(root, f"client-{store.new_id()}", options=options)
    atexit.register(workspace.close)
    return Lake(
        ClientContext(
            session=session,
            store=store,
            tables=SparkTables(session, lake_root, options),
            workspace=workspace,
            paths=JobPaths(workspace=root, exchange=_exchange(root)),
            limits=limits,
            who=who or getpass.getuser(),
            lake_root=lake_root,
            options=options,
            sources=addresses,
            run_id=store.new_id(),
            use_cached_result=use_cached_result,
            rules=reuse_rules,
        )
    )


def _exchange(root: str) -> str:
    """The place at which jobs look for a cancel: the client runs them itself, so it need not be on a store."""
    on_a_store = "://" in root and not root.startswith("file:")
    return tempfile.mkdtemp(prefix="tidemark-jobs-") if on_a_store else f"{root}/jobs"
