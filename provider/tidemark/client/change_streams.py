"""Change streams from a notebook: what they watch, and what the catalog says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tidemark.change_streams.driver.functions import drop_read_functions
from tidemark.change_streams.model.change_streams import ChangeStream
from tidemark.change_streams.planning import catalog
from tidemark.change_streams.planning.catalog import CatalogColumn, CatalogOption, CatalogStream, CatalogTable
from tidemark.change_streams.worker import defining, definitions
from tidemark.change_streams.worker.watching import LeftOut, tables_left_out
from tidemark.client.change_stream_readers import ReadersOfChangeStreams
from tidemark.client.context import ClientContext
from tidemark.client.lake_tables import lake_tables
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_paths import logs_root

__all__ = ["ChangeStreamsOfALake"]

Watch = str | Sequence[str] | Mapping[str, Sequence[str] | None]
"""`"ALL"`, a table, tables, or {table: None | [columns] | []}: all of its columns, some, the key alone."""


class ChangeStreamsOfALake(ReadersOfChangeStreams):
    """The part of `Lake` that defines change streams. Their names are found in any case."""

    _context: ClientContext

    def create_change_stream(
        self,
        name: str,
        watch: Watch | None = None,
        *,
        keys: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
        if_not_exists: bool = False,
        initial_partitions: int = 1,
        enable_row_tracking: bool = False,
        **options: Any,
    ) -> ChangeStream:
        """A change stream on these tables, from their newest versions on; on none it is suspended. "ALL" leaves those
        out that cannot be watched, with a warning: `tables_left_out` names them.

        `watch`: "ALL", a table, tables, or {table: None | [columns] | []}. `keys`: the primary key of each table that
        does not say its own in the property tidemark.primaryKey. `initial_partitions`: hash ranges to begin with, up to
        1,024. `enable_row_tracking` turns it on where it is off. `options`: retention_period, value_capture_type,
        exclude_insert, exclude_update, exclude_delete, exclude_ttl_deletes, allow_txn_exclusion. With `if_not_exists` a
        second run changes nothing. Raises ChangeStreamExists, ChangeStreamRefused, InvalidArgument,
        RowTrackingDisabled, UnsupportedTableFeature.
        """
        return defining.create(
            self._context.store,
            name,
            watch=watch,
            keys=keys,
            options=options,
            tables=lake_tables(self._context, enable_row_tracking=enable_row_tracking),
            logs=logs_root(self._context.paths.workspace),
            initial_partitions=initial_partitions,
            if_not_exists=if_not_exists,
        )

    def alter_change_stream(
        self,
        name: str,
        watch: Watch | None = None,
        *,
        keys: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
        restart: str | Sequence[str] = (),
        enable_row_tracking: bool = False,
        **options: Any,
    ) -> ChangeStream:
        """Watch other tables, unless `watch` is left out, and set these options; None restores a default. Both hold
        from the next capture on.

        A table that stays continues at its captured version. A table in `restart` (a table, or a list) continues from
        its newest version on, and the commits between are not captured. This is the way past a version that cannot be
        captured. A batch that is open is discarded, unless the log has it. Without `restart` a second run changes
        nothing. Raises ChangeStreamNotFound and what `create_change_stream` raises.
        """
        return defining.alter(
            self._context.store,
            name,
            watch=watch,
            keys=keys,
            options=options,
            tables=lake_tables(self._context, enable_row_tracking=enable_row_tracking),
            restart=restart,
            open_log=partial(DeltaLog.open, options=self._context.options),
        )

    def suspend_change_stream(self, name: str) -> ChangeStream:
        """Watch no table until `alter_change_stream` names some. Captured records can still be read; commits
        since the last capture are not captured. Raises ChangeStreamNotFound.
        """
        return definitions.suspend(
            self._context.store, name, open_log=partial(DeltaLog.open, options=self._context.options)
        )

    def drop_change_stream(self, name: str, *, if_exists: bool = False) -> None:
        """End the change stream and delete its records. Raises ChangeStreamNotFound."""
        context = self._context
        if not (if_exists and defining.find(context.store, name) is None):
            drop_read_functions(context.spark, defining.drop(context.store, name, context.options))

    def describe_change_stream(self, name: str) -> ChangeStream:
        """One change stream as the store knows it. Raises ChangeStreamNotFound."""
        return definitions.get_change_stream(self._context.store, name)

    def tables_left_out(self, name: str) -> tuple[LeftOut, ...]:
        """The tables of the lake that a change stream FOR ALL does not watch now, and the reasons. These are: no key,
        no row tracking, three watchers already, written by one of its own groups. Once the reason is gone, the next
        capture adds the table. Empty for a change stream of tables that were named. Raises ChangeStreamNotFound.
        """
        stream = definitions.get_change_stream(self._context.store, name)
        return tables_left_out(self._context.store, stream, lake_tables(self._context))

    def change_streams(self) -> tuple[CatalogStream, ...]:
        """INFORMATION_SCHEMA.CHANGE_STREAMS: all change streams, by name."""
        return catalog.catalog_streams(definitions.list_change_streams(self._context.store))

    def change_stream_tables(self) -> tuple[CatalogTable, ...]:
        """INFORMATION_SCHEMA.CHANGE_STREAM_TABLES: the tables that are watched by name."""
        return catalog.catalog_tables(definitions.list_change_streams(self._context.store))

    def change_stream_columns(self) -> tuple[CatalogColumn, ...]:
        """INFORMATION_SCHEMA.CHANGE_STREAM_COLUMNS: the columns that are watched by name."""
        return catalog.catalog_columns(definitions.list_change_streams(self._context.store))

    def change_stream_options(self) -> tuple[CatalogOption, ...]:
        """INFORMATION_SCHEMA.CHANGE_STREAM_OPTIONS: the options that were set."""
        return catalog.catalog_options(definitions.list_change_streams(self._context.store))
