"""MySQL and MariaDB as a worker sees them: their catalogs and binary logs, for one replication.

Nothing is made in such a source. Its log has every table and is kept by age, so a replication is a place in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

from tidemark.errors import InvalidArgument, SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import (
    START,
    FoundObject,
    LogPosition,
    NameCase,
    ObjectName,
    Replication,
    Selection,
    SourceProblem,
)
from tidemark.replication.model.source_discovery import SourceNames
from tidemark.replication.planning.gtids import Gtids, parse_gtids
from tidemark.replication.planning.positions import FilePlace, epoch_of, parse_file_place, place_of, position_text
from tidemark.replication.planning.selection import selects
from tidemark.replication.sources.mysql import binlog
from tidemark.replication.sources.mysql.cascades import cascades_of
from tidemark.replication.sources.mysql.catalog import CatalogTable, discover, server_facts, system_id_of
from tidemark.replication.sources.mysql.connection import Connection, connect, rows_of
from tidemark.replication.sources.mysql.failover import (
    gtids_at,
    gtids_between,
    require_continuable,
    require_not_set_back,
)
from tidemark.replication.sources.mysql.failures import source_text
from tidemark.replication.sources.mysql.log_files import file_sizes, require_readable, visible_end
from tidemark.replication.sources.mysql.log_stream import FIRST, LoggedEvent, events_from
from tidemark.replication.sources.mysql.statements import effects_of, is_change_of_rows
from tidemark.replication.sources.mysql.validation import problems_of, retention_of

__all__ = ["BinlogSource"]

_DATABASES = """
SELECT SCHEMA_NAME FROM information_schema.SCHEMATA
WHERE SCHEMA_NAME NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
"""
_CASCADES = (
    "foreign key {names} changes its rows without an event in the log. Declare it with RESTRICT for ON DELETE and ON"
    " UPDATE, or backfill the table after such a change"
)
_NO_SUCH_OPTION = "is of PostgreSQL: a MySQL or MariaDB has none. Leave it out"


class BinlogSource:
    """The `Source` of a MySQL or MariaDB. Its connections live as long as a call."""

    def __init__(self, address: SourceAddress) -> None:
        self._address = address
        self._read: tuple[LogPosition, LogPosition, str] | None = None  # GTIDs of the newest look

    def system_id(self) -> str:
        """The server's `server_uuid`; of a MariaDB its GTID domain and `server_id`."""
        with connect(self._address) as connection:
            return server_facts(connection).system_id

    def names(self) -> SourceNames:
        """A schema is a database here, so that all are the schemas of the connection, too."""
        with connect(self._address) as connection:
            found = tuple(sorted(str(name) for (name,) in rows_of(connection, _DATABASES)))
        return SourceNames(self._address.database, found, found)

    def current_position(self, replication: Replication | None = None) -> LogPosition:
        """The end of what every session sees."""
        with connect(self._address) as connection:
            epoch = _epoch(connection, replication)
            return visible_end(connection, self._address).in_epoch(epoch).position

    def parse_position(self, text: str, replication: Replication | None = None) -> LogPosition:
        """`mysql-bin.000003:4711`. Raises InvalidArgument."""
        place = parse_file_place(text)
        whole = text.strip() == place.position.commit
        if whole or replication is None or replication.captured is None:
            return place.position
        with connect(self._address) as connection:
            return place.in_epoch(_epoch(connection, replication)).position

    def discover(self, replication: Replication) -> tuple[FoundObject, ...]:
        """The tables of "all tables", and views that the selection names without a `*`, which are refused."""
        with connect(self._address) as connection:
            found, any_case, cascades = discover(connection), _any_case(connection), cascades_of(connection)
        return tuple(
            _found(one, any_case, cascades.get(one.name, ()))
            for one in found
            if one.by_default or one.name.text in replication.selection.include
        )

    def seen(self, replication: Replication, found: Sequence[FoundObject]) -> Mapping[str, SeenTable]:
        """Nothing: the binary log itself has each statement that changes rows of a table without events of rows."""
        return {}

    def problems(self, replication: Replication, selected: Sequence[FoundObject]) -> tuple[SourceProblem, ...]:
        """Of the server, the rights and the tables, each with the statement that fixes it. Raises InvalidArgument for
        options of a PostgreSQL.
        """
        for name in ("publication", "slot", "numeric_as"):
            if getattr(replication.options, name) is not None:
                value = getattr(replication.options, name)
                raise InvalidArgument(argument=name, value=value, problem=_NO_SUCH_OPTION)
        with connect(self._address) as connection:
            return problems_of(connection, self._address, selected, replication.options)

    def publish(
        self, replication: Replication, selected: Sequence[FoundObject], *, leave: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Nothing: the log has every table."""
        return ()

    def locked(self, replication: Replication, selected: Sequence[FoundObject]) -> frozenset[str]:
        """None, as nothing is locked."""
        return frozenset()

    def published(self, replication: Replication) -> frozenset[str]:
        """All tables."""
        with connect(self._address) as connection:
            return frozenset(one.source_id for one in discover(connection))

    def make_slot(self, replication: Replication, *, patience: timedelta) -> LogPosition:
        """The end of what every session sees. Nothing is made."""
        return self.current_position(replication)

    def require_ours(self, replication: Replication) -> LogPosition:
        """The captured position. A server that took over from the one before is ours if it has its transactions. Raises
        SourceIsAnother, SourceSetBack, LogPurged, TransactionsMissing.
        """
        with connect(self._address) as connection:
            facts = server_facts(connection)
            same = facts.dialect.kind is replication.kind
            found = facts.system_id if same else f"{facts.system_id} of a {facts.dialect.name}"
            captured = replication.captured or START
            place, gtids = place_of(captured), replication.gtids
            if replication.system_id in (None, found):
                if place is not None:
                    require_readable(connection, self._address, place)
                if gtids:
                    require_not_set_back(connection, self._address, gtids)
            elif same and gtids:
                require_continuable(connection, self._address, gtids, position=position_text(captured))
            else:
                source = source_text(self._address)
                raise SourceIsAnother(source=source, found=found, expected=replication.system_id)
        return captured

    def slot_position(self, replication: Replication) -> LogPosition | None:
        """The beginning of the oldest file that the server still has."""
        with connect(self._address) as connection:
            oldest = next(iter(file_sizes(connection)), None)
            epoch = _epoch(connection, replication)
        return None if oldest is None else FilePlace.of_file(oldest, FIRST, epoch).position

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Whether a table of the selection has rows or a statement in the log. Raises LogPurged. Of a server that took
        over it is not asked: a run has to find the place in its log.
        """
        captured = replication.captured
        place = None if captured is None else place_of(captured)
        if captured is None or place is None or captured >= until:
            return captured is None or place is None
        if epoch_of(until) != place.epoch:
            return True
        gtids = parse_gtids(replication.kind, "")
        with closing(events_from(self._address, place, server=replication.system_id)) as events:
            if any(_is_of(event, replication.selection) for event in _before(events, until, place.epoch, gtids)):
                return True
        self._read = captured, until, gtids.text
        return False

    def gtids(self, replication: Replication, until: LogPosition) -> str:
        """Of all transactions before `until`, after `has_changes` has found nothing before it."""
        captured = replication.captured or START
        place, end = place_of(captured), place_of(until)
        if place is None or end is None or captured >= until or place.epoch != end.epoch:
            return replication.gtids or ""
        with connect(self._address) as connection:
            known = replication.gtids or gtids_at(connection, self._address, place)
            if known is None:
                return ""
            if self._read is None or self._read[:2] != (captured, until):
                return gtids_between(connection, self._address, known, place, end)
        return parse_gtids(replication.kind, ",".join((known, self._read[2]))).text

    def advance(self, replication: Replication, to: LogPosition) -> None:
        """Nothing: the server removes its log by age."""

    def alerts(self, replication: Replication) -> tuple[str, ...]:
        """In words, if the server is about to remove what was not captured."""
        with connect(self._address) as connection:
            kept, now = retention_of(server_facts(connection)), _now(connection)
        if kept is None or replication.captured_at is None:
            return ()
        behind = (now - replication.captured_at).total_seconds()
        if behind <= kept / 2:
            return ()
        return (
            f"The log was captured up to {behind / 3600:.1f} hours ago, and the server keeps it for"
            f" {kept / 3600:.1f}. Capture now, or raise binlog_expire_logs_seconds.",
        )

    def drop_slot(self, replication: Replication) -> bool:
        """There is none."""
        return False

    def drop(self, replication: Replication) -> tuple[str, ...]:
        """Nothing was made."""
        return ()


def _found(table: CatalogTable, any_case: NameCase, cascades: Sequence[str]) -> FoundObject:
    unsupported = None if table.problem is None else " ".join(filter(None, (f"{table.problem}.", table.remedy)))
    return FoundObject(
        table.name,
        table.source_id,
        table.schema,
        table.rows,
        unsupported=unsupported,
        notices=(_CASCADES.format(names=", ".join(cascades)),) if cascades else (),
        any_case=any_case,
    )


def _any_case(connection: Connection) -> NameCase:
    ((folded,),) = rows_of(connection, "SELECT @@GLOBAL.lower_case_table_names")
    return NameCase.ALL if folded else NameCase.COLUMNS


def _before(events: Iterator[LoggedEvent], until: LogPosition, epoch: int, gtids: Gtids) -> Iterator[LoggedEvent]:
    """Also adds the GTIDs that it meets."""
    for event in events:
        if FilePlace.of_file(event.file, event.start, epoch).position >= until:
            return
        if event.header.kind in binlog.GTIDS and (gtid := binlog.gtid_of(event.header, event.data).text):
            gtids.add(gtid)
        yield event


def _epoch(connection: Connection, replication: Replication | None) -> int:
    """Of places in this server's log. It is the next one if the server took over."""
    if replication is None:
        return 1
    other = replication.system_id not in (None, system_id_of(connection))
    return epoch_of(replication.captured) + other


def _is_of(event: LoggedEvent, selection: Selection) -> bool:
    """A statement that changes rows counts for every table, as which it is about is not known."""
    kind = event.header.kind
    if kind == binlog.Kind.TABLE_MAP:
        table = binlog.decode_table_map(event.data, mariadb=False)
        return _takes(selection, ObjectName(table.schema, table.table))
    if kind in binlog.QUERIES:
        query = binlog.decode_query(event.data, kind)
        named = (_takes(selection, one.name) for one in effects_of(query.statement, query.schema))
        return any(named) or is_change_of_rows(query.statement)
    return kind in (binlog.Kind.COMPRESSED_TRANSACTION, binlog.Kind.INCIDENT)


def _takes(selection: Selection, name: ObjectName) -> bool:
    """A statement may have a name in another case than the table has, and a server may take names in any case."""
    return selects(selection, name) or selects(selection, name, any_case=True)


def _now(connection: Connection) -> datetime:
    """By the server's clock."""
    ((now,),) = rows_of(connection, "SELECT UTC_TIMESTAMP()")
    return datetime.fromisoformat(str(now)).replace(tzinfo=UTC)
