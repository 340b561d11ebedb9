"""Landing tables in the control store, so that lists and pages show them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

import sqlalchemy as sa

from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.store import landing_tables
from tidemark.control.samples import keep_sample
from tidemark.control.store import ControlStore
from tidemark.errors import LakeError, NotADeltaTable, SourceError, TableNotFound
from tidemark.model.streams import TableRef
from tidemark.streams.worker.sources import Tables

__all__ = ["end_missing_tables", "note_landing_table"]

log = logging.getLogger(__name__)


def note_landing_table(
    store: ControlStore,
    table: TableRef,
    channels: Mapping[str, ChannelRecord],
    *,
    by: str,
    figures: Mapping[str, float] | None = None,
) -> None:
    """Keep in the store whether the table has channels, and the sample of the run. `by`: the key of the run. A second
    run adds a sample, and changes nothing else.
    """

    def note(connection: sa.Connection) -> None:
        now = store.clock()
        landing_tables.register(connection, table, by=by, at=now)
        if figures is not None:
            keep_sample(connection, landing_tables.KIND, table.table_id, at=now, run=by, figures=figures)

    if channels:
        store.write(note)
    else:
        store.write(lambda connection: landing_tables.end(connection, table.table_id, at=store.clock()))


def end_missing_tables(store: ControlStore, tables: Tables) -> tuple[str, ...]:
    """End the tables that were dropped, or created again at their path. Their names. A second run finds none.

    A table whose storage is away for now is listed again with its next task.
    """
    ended = []
    for uid, table in store.read(landing_tables.live).items():
        try:
            is_there = tables(table).state().table_id == uid
        except (NotADeltaTable, TableNotFound):
            is_there = False
        except (SourceError, LakeError) as error:
            log.warning("Table %s is skipped: %s", table.name, error)
            continue
        if not is_there:
            store.write(partial(landing_tables.end, uid=uid, at=store.clock()))
            ended.append(table.name)
    return tuple(ended)
