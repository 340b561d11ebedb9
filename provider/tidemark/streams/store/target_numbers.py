"""The numbers of streams with which jobs were ordered for tables: what a table may hold that this store knows of.

A job is stored before it exists (PROTOCOL step 8). So a table never holds a number that the store has not ordered. A
table that does has seen a later state of the store than this one, or another store with the same stream.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.model.streams import TableRef
from tidemark.streams.store.schema import streams, target_numbers

__all__ = ["KnownTable", "came_with", "keep", "known_table", "ordered_anywhere", "tables_of"]


@dataclass(frozen=True)
class KnownTable:
    """Of one table: stream uid → the highest number ordered, and up to which version its log was looked at.

    `version` None: never under this id. `numbers` are also those of the table that lay there, or of this one elsewhere:
    replacing and moving keep Delta's entries.
    """

    numbers: Mapping[str, int]
    version: int | None


def known_table(connection: sa.Connection, table: TableRef) -> KnownTable:
    """The numbers and the version that the store knows of the table."""
    same = target_numbers.c.target_table_id == table.table_id
    query = sa.select(target_numbers).where((target_numbers.c.target_path == table.path) | same)
    numbers: dict[str, int] = {}
    versions: list[int] = []
    for row in connection.execute(query).mappings():
        numbers[row["stream_uid"]] = max(row["serial"], numbers.get(row["stream_uid"], 0))
        if row["target_table_id"] == table.table_id:
            versions.append(row["version"])
    return KnownTable(numbers, max(versions, default=None))


def ordered_anywhere(connection: sa.Connection, uids: Collection[str]) -> dict[str, int]:
    """Stream uid → the highest number ordered for any table: for a table that is otherwise unknown."""
    query = (
        sa.select(target_numbers.c.stream_uid, sa.func.max(target_numbers.c.serial))
        .where(target_numbers.c.stream_uid.in_(uids))
        .group_by(target_numbers.c.stream_uid)
    )
    return {uid: serial for uid, serial in connection.execute(query)}


def came_with(connection: sa.Connection, uids: Collection[str]) -> dict[str, int]:
    """Stream uid → the number that the stream had when it came into this store."""
    query = sa.select(streams.c.uid, streams.c.known_serial).where(streams.c.uid.in_(uids))
    return {uid: serial or 0 for uid, serial in connection.execute(query)}


def keep(connection: sa.Connection, table: TableRef, uid: str, serial: int, *, version: int) -> None:
    """The number is known from now on, and the table's log up to `version`. A second time, and a smaller number,
    changes nothing.
    """
    row = {"target_path": table.path, "target_table_id": table.table_id, "stream_uid": uid}
    same = sa.and_(*(target_numbers.c[name] == value for name, value in row.items()))
    found = connection.execute(sa.select(target_numbers.c.serial, target_numbers.c.version).where(same)).first()
    if found is None:
        connection.execute(target_numbers.insert().values(**row, serial=serial, version=version))
    elif serial > found.serial or version > found.version:
        higher = {"serial": max(serial, found.serial), "version": max(version, found.version)}
        connection.execute(target_numbers.update().where(same).values(**higher))


def tables_of(connection: sa.Connection, uid: str) -> tuple[TableRef, ...]:
    """The tables for which jobs of transactions that the stream led were ordered; each named by its path."""
    query = sa.select(target_numbers.c.target_path, target_numbers.c.target_table_id)
    rows = connection.execute(query.where(target_numbers.c.stream_uid == uid))
    return tuple(TableRef(path, path, table_id) for path, table_id in rows)
