"""What acts on a replication need of the connections: its source, and where its event log lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.lake.delta_log import DeltaLog
    from tidemark.replication.model.replication import Replication
    from tidemark.replication.sources.open import Source

__all__ = ["event_log_of", "event_log_path", "source_of"]


def source_of(replication: Replication) -> Source:
    """The database of the replication, for the worker. Raises what `source_address` does, and NotYetSupported."""
    from tidemark.hooks.source_connection import source_address
    from tidemark.replication.sources.open import open_source

    return open_source(source_address(replication.source_conn_id))


def event_log_path(hook: TidemarkHook) -> Callable[[str], str]:
    """Where the event log of the replication with that uid lies."""
    from tidemark.lake.log_paths import event_logs_root

    root = event_logs_root(hook.settings.workspace)
    return lambda uid: f"{root}/{uid}"


def event_log_of(hook: TidemarkHook) -> Callable[[str], DeltaLog]:
    """Opens an event log by its path, with the storage options of the connection."""
    from functools import partial

    from tidemark.lake.delta_log import DeltaLog

    return partial(DeltaLog.open, options=hook.settings.storage_options)
