"""The partitions of a change stream, as the control store knows them."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.change_streams.model.partition_table import PartitionTable
from tidemark.change_streams.planning.partition_statuses import captured_partitions, partitions_of_group
from tidemark.change_streams.store import change_streams, consumer_groups, group_partitions, partitions
from tidemark.control.store import ControlStore

__all__ = ["list_partitions"]


def list_partitions(store: ControlStore, name: str, group: str | None = None) -> PartitionTable:
    """All partitions that are not forgotten, parents before children; with a consumer group its own, in its states.

    Idempotent: it changes nothing. Raises ChangeStreamNotFound, ConsumerGroupNotFound.
    """

    def read(connection: sa.Connection) -> PartitionTable:
        stream = change_streams.find(connection, name)
        reader = None if group is None else consumer_groups.find(connection, stream, group)
        found = partitions.of_stream(connection, stream.uid)
        if reader is None:
            return captured_partitions(found, stream.published_until)
        mine = {one.partition.token: one for one in group_partitions.of_group(connection, reader)}
        return partitions_of_group(found, mine, reader.start)

    return store.read(read)
