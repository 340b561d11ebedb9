"""A table that a session holds while others read it, so that nobody alters or empties it under them.

The session has the table in an open transaction, whose metadata lock lets every query and every change of a row pass.
An ALTER, a TRUNCATE or FLUSH TABLES waits for it, and queries of the application would wait behind those. So a watch
ends all sessions of the copy once somebody has waited for the bound. A session that reads takes its own lock within a
second or fails. Once the session that holds the table is gone, no reader begins, and all fail within some rows. The
server ends a session that nobody drives.

The position is taken after the lock, so no other definition of the table comes between it and the rows. Readers of a
mirror with a key see the table at different times, all at or after the position. Each later event has its whole row, so
that applying it again changes nothing. Any other target is read by one session, exactly as of the position (`pinned`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

from tidemark.errors import BackfillGaveWay, ObjectNotReplicable, SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.sources.fetches import RowSizes
from tidemark.replication.sources.mysql.catalog import columns_of, system_id_of
from tidemark.replication.sources.mysql.connection import connect, is_encrypted, rows_of
from tidemark.replication.sources.mysql.dialects import Dialect, dialect_of
from tidemark.replication.sources.mysql.failures import source_text
from tidemark.replication.sources.mysql.log_files import visible_end
from tidemark.replication.sources.mysql.names import name_of_id, qualified, quoted
from tidemark.replication.sources.mysql.pinned import PinnedRows, pinned_rows
from tidemark.replication.sources.mysql.reading import reads_long, row_bytes
from tidemark.replication.sources.mysql.watching import watching

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["HeldTable", "fails_unless_held", "held_table", "still_held"]

_LOCKED = "it is locked by another session, or one waits for it"
_LOCK_WAIT_TIMEOUT = 1205
_GONE = 1146
_LOCK_SECONDS = 1  # the shortest that servers know
_UNDRIVEN = 30  # seconds after which the server ends a session that nobody drives
_SAMPLED = 1000  # rows
_WHOLE_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_FEW = 10_000  # rows that one session reads as fast as several


@dataclass(frozen=True)
class HeldTable:
    """A table whose definition stays as it is. With every event at or behind `position` applied, its rows are those of
    the source. `encrypted`: PyMySQL's sessions have TLS. `marker`: in every query of the copy, by which the watch knows
    them. `cuts`: values of `split`, a column of the key, that part the rows. `pinned`: the session that reads exactly
    as of `position`, if events could not complete a copy of later rows. `gave_way`: why the sessions were ended; None:
    they were not.
    """

    position: LogPosition
    taken_at: datetime
    schema: TableSchema
    source: str
    dialect: Dialect
    encrypted: bool
    marker: str
    split: str | None = None
    cuts: tuple[int, ...] = ()
    sizes: RowSizes = field(default_factory=RowSizes)
    pinned: PinnedRows | None = None
    gave_way: Callable[[], str | None] = lambda: None

    def ranges(self) -> tuple[str, ...]:
        """Conditions on `at` that part the rows; the first and the last are open."""
        lower = ["1 = 1", *(f"at >= {cut}" for cut in self.cuts)]
        upper = [*(f"at < {cut}" for cut in self.cuts), "1 = 1"]
        return tuple(f"{low} AND {high}" for low, high in zip(lower, upper, strict=True))


def fails_unless_held(marker: str) -> str:
    """An expression that is 0. It fails if the session that holds the table is gone."""
    return f"IF(IS_USED_LOCK('{marker}') IS NULL, EXP(710 + RAND()), 0)"


def still_held(marker: str, rows: int) -> str:
    """A condition that is true. About once in this many rows it fails the query, if the session that holds the table is
    gone.
    """
    return f"IF(RAND() * {rows} < 1, {fails_unless_held(marker)}, 0) = 0"


@contextmanager
def held_table(
    address: SourceAddress,
    source_id: str,
    *,
    name: str,
    marker: str,
    choose: Callable[[TableSchema], TableSchema] = lambda schema: schema,
    partitions: int = 1,
    expected: int = 0,
    bound: timedelta,
    server: str | None = None,
    epoch: int = 1,
    keeps_rows: bool = False,
) -> Iterator[HeldTable]:
    """The table, held while the context lasts, or until somebody has waited `bound` for it. `choose`: its columns as
    the lake has them. `marker`: a name of 64 characters at most that no other copy has. `server`: whose log has the
    events behind the copy; `epoch`: of places in it. `keeps_rows`: the target is append-only.

    Raises SourceIsAnother if another server answers. Raises ObjectNotReplicable if it is gone. Raises BackfillGaveWay
    if somebody has it locked at this moment. Raises what `pinned_rows`, `connect` and `visible_end` do. Nothing stays
    behind in the source in any case.
    """
    table_name = name_of_id(source_id)
    with ExitStack() as reading, connect(address) as holder, watching(address, table_name, marker, bound) as watch:
        _hold(holder, source_id, name, marker)
        watch.keep(holder)
        with connect(address) as asking:
            _require_server(asking, address, server)
            found = columns_of(asking, source_id)
            pinned = None
            if keeps_rows or not found.keys:
                pinned = reading.enter_context(pinned_rows(address, table_name, name=name, server=server))
            place = visible_end(asking, address) if pinned is None else pinned.place
            split = _split(found) if pinned is None and partitions > 1 and expected > _FEW else None
            table = _described(asking, source_id, choose(found), split, partitions)
        position = place.in_epoch(epoch).position
        yield HeldTable(position=position, marker=marker, pinned=pinned, gave_way=watch.why, **table)


def _hold(holder: Connection, source_id: str, name: str, marker: str) -> None:
    import pymysql

    source = qualified(name_of_id(source_id))
    with holder.cursor() as cursor:
        cursor.execute(f"SET SESSION lock_wait_timeout = {_LOCK_SECONDS}, wait_timeout = {_UNDRIVEN}")
        cursor.execute("SELECT GET_LOCK(%s, 0)", (marker,))
        cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")  # no old row is kept for it
        cursor.execute("START TRANSACTION")
        try:
            cursor.execute(f"SELECT 1 FROM {source} LIMIT 1")
        except pymysql.err.MySQLError as error:
            if error.args[0] == _LOCK_WAIT_TIMEOUT:
                raise BackfillGaveWay(object=name, problem=_LOCKED) from error
            if error.args[0] == _GONE:
                raise ObjectNotReplicable(object=name, problem="it is gone", remedy="Exclude it.") from error
            raise


def _require_server(connection: Connection, address: SourceAddress, server: str | None) -> None:
    if server is not None and (found := system_id_of(connection)) != server:
        raise SourceIsAnother(source=source_text(address), found=found, expected=server)


class _Described(TypedDict):
    taken_at: datetime
    schema: TableSchema
    source: str
    dialect: Dialect
    encrypted: bool
    split: str | None
    cuts: tuple[int, ...]
    sizes: RowSizes


def _described(
    connection: Connection, source_id: str, schema: TableSchema, split: str | None, partitions: int
) -> _Described:
    source = qualified(name_of_id(source_id))
    sample = f"SELECT {row_bytes(schema.columns)} AS size FROM {source} LIMIT {_SAMPLED}"
    ((widest, mean),) = rows_of(connection, f"SELECT COALESCE(MAX(size), 0), COALESCE(AVG(size), 0) FROM ({sample}) s")
    return _Described(
        taken_at=datetime.now(UTC),
        schema=schema,
        source=source,
        dialect=dialect_of(str(connection.get_server_info())),
        encrypted=is_encrypted(connection),
        split=split,
        cuts=() if split is None else _cuts(connection, source, split, partitions),
        sizes=RowSizes(int(widest), reads_long(schema.columns), int(mean)),
    )


def _split(schema: TableSchema) -> str | None:
    """A column of the key whose values are whole numbers."""
    keys = [column for column in schema.columns if column.key]
    return next((one.name for one in keys[:1] if one.native.removesuffix(" unsigned") in _WHOLE_NUMBERS), None)


def _cuts(connection: Connection, source: str, column: str, partitions: int) -> tuple[int, ...]:
    name = quoted(column)
    ((least, most),) = rows_of(connection, f"SELECT MIN({name}), MAX({name}) FROM {source}")
    if least is None:
        return ()
    span = int(most) - int(least) + 1
    return tuple(sorted({int(least) + span * part // partitions for part in range(1, partitions)} - {int(least)}))
