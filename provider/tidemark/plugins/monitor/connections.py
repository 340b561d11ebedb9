"""The connections that the page shows: control store and lake of a Tidemark connection, opened for reading."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from airflow.sdk.configuration import conf

from tidemark.control.engines import Bounds
from tidemark.control.store import ControlStore
from tidemark.control.urls import SQLITE, parse_url
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook, without_secrets
from tidemark.streams.worker.sources import Tables

__all__ = ["STORE_THREADS", "MonitoredConnection", "connection_ids", "open_connection"]

STORE_THREADS = 4  # that read one store at once, each with a connection
_PATIENCE = timedelta(seconds=1)  # for a read that may be tried again


@dataclass(frozen=True)
class MonitoredConnection:
    """`store` is None if no store has been made yet: the first task that uses an embedded one makes it."""

    conn_id: str
    store: ControlStore | None
    tables: Tables


def connection_ids() -> tuple[str, ...]:
    """The connections whose streams are shown, from `[tidemark] monitor_conn_ids`; the first is shown first."""
    named = conf.get("tidemark", "monitor_conn_ids", fallback="") or DEFAULT_CONN_ID
    return tuple(dict.fromkeys(name.strip() for name in named.split(",") if name.strip())) or (DEFAULT_CONN_ID,)


def open_connection(conn_id: str) -> MonitoredConnection:
    """The connection as it is now. Opening does no I/O on store or lake, and never makes or migrates a store.

    Raises AirflowNotFoundException, InvalidArgument, StoreUrlInvalid.
    """
    hook = TidemarkHook(conn_id)
    url = hook.settings.control_store
    return MonitoredConnection(conn_id, None if _is_missing_file(url) else _store(url), hook.open_table)


@lru_cache(maxsize=16)
def _store(url: str) -> ControlStore:
    """One engine a URL. A page must not migrate, and had better say soon that a store does not answer. An act settles
    objects as tasks do, so their problems are masked as well.
    """
    return ControlStore(url, embedded=False, patience=_PATIENCE, hide=without_secrets, bounds=Bounds(STORE_THREADS))


def _is_missing_file(url: str) -> bool:
    parsed = parse_url(url)
    return parsed.get_backend_name() == SQLITE and bool(parsed.database) and not os.path.exists(str(parsed.database))
