"""The parts of connections that acts on a replication need: its source and its event log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.lake.delta_log import DeltaLog
    from tidemark.replication.model.replication import Replication
    from tidemark.replication.model.source_discovery import SourceDiscovery
    from tidemark.replication.sources.open import Source

__all__ = ["discovered_source", "event_log_of", "event_log_path", "source_of"]


def source_of(replication: Replication) -> Source:
    """The database of the replication, for the worker. Raises what `source_address` does, and NotYetSupported."""
    from tidemark.hooks.source_connection import source_address
    from tidemark.replication.sources.open import open_source

    return open_source(source_address(replication.source_conn_id))


def discovered_source(conn_id: str, *, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> SourceDiscovery:
    """The tables of the database at that connection; nothing is made. Raises what `source_address` and
    `discover_source` do, and NotYetSupported.
    """
    from tidemark.hooks.source_connection import source_address
    from tidemark.replication.sources.open import open_source
    from tidemark.replication.worker.source_discovery import discover_source

    address = source_address(conn_id)
    return discover_source(open_source(address), address.kind, include=include, exclude=exclude)


def event_log_path(hook: TidemarkHook) -> Callable[[str], str]:
    """A function from a replication's uid to the path of its event log."""
    from tidemark.lake.log_paths import event_logs_root

    root = event_logs_root(hook.settings.workspace)
    return lambda uid: f"{root}/{uid}"


def event_log_of(hook: TidemarkHook) -> Callable[[str], DeltaLog]:
    """A function that opens an event log by its path, with the connection's storage options."""
    from functools import partial

    from tidemark.lake.delta_log import DeltaLog

    return partial(DeltaLog.open, options=hook.settings.storage_options)
