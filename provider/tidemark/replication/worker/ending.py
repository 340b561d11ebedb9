"""The end of a replication: in its source, in the lake, and in the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemark.control.store import ControlStore
from tidemark.lake.log_paths import remove_log, written_files_path
from tidemark.replication.model.replication import Actor, Replication
from tidemark.replication.sources.open import Source
from tidemark.replication.worker.definitions import begin_drop, drop_replication

__all__ = ["Ended", "end_replication"]


@dataclass(frozen=True)
class Ended:
    """The replication as it was. `in_source`: what was taken away there, in words; None: nobody looked."""

    replication: Replication
    in_source: tuple[str, ...] | None


def end_replication(
    store: ControlStore,
    name: str,
    *,
    by: Actor,
    source: Callable[[Replication], Source] | None,
    storage_options: Mapping[str, str] | None = None,
    force: bool = False,
) -> Ended:
    """Drop slot and publication, then what the store knows, then the event log. Targets and event files stay. Without
    `source` nothing is dropped there.

    Slot first: a source whose slot nobody reads keeps its log until its disk is full. Killed in between, it is dropped
    by the next run. Raises ReplicationRefused while a job of it may be alive, unless `force`; ReplicationNotFound, as a
    second run does; SlotBusy, SlotForeign, SourceUnreachable, SourceRefused.
    """
    ending = begin_drop(store, name, by=by, force=force)
    gone = None if source is None else source(ending).drop(ending)
    dropped = drop_replication(store, ending.name, by=by)
    remove_log(dropped.event_log, storage_options)
    remove_log(written_files_path(dropped.event_log), storage_options)
    return Ended(dropped, gone)
