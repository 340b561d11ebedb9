"""The same transactions in the log of another server, by their GTIDs: a replica that took over from its primary.

Places in the files of two servers have nothing to do with each other, and transactions may have another order. So the
log of the new server is read from the newest file that begins with captured transactions alone. The first transaction
that was not captured is where a capture continues. Captured ones behind it are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from tidemark.errors import LogPurged, SourceSetBack, TransactionsMissing
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.planning.gtids import Domains, Intervals, Pending, PendingIntervals, parse_gtids
from tidemark.replication.planning.positions import FilePlace
from tidemark.replication.sources.mysql.binlog import GTIDS, gtid_of
from tidemark.replication.sources.mysql.catalog import system_id_of
from tidemark.replication.sources.mysql.connection import Connection, rows_of
from tidemark.replication.sources.mysql.dialects import dialect_of
from tidemark.replication.sources.mysql.failures import source_text
from tidemark.replication.sources.mysql.log_files import file_sizes
from tidemark.replication.sources.mysql.log_stream import FIRST, events_from

__all__ = ["Continued", "continued", "gtids_at", "gtids_between", "require_continuable", "require_not_set_back"]

_HEAD = 3  # events of a file within which a MySQL has its earlier GTIDs


@dataclass(frozen=True)
class Continued:
    """The place in a log from which on nothing was captured. `gtids`: of what was captured; None: not known. `again`:
    captured transactions that the log has behind `place`, all of them before `behind`.
    """

    place: FilePlace
    gtids: str | None = None
    again: Pending | None = None
    behind: FilePlace | None = None


def gtids_at(connection: Connection, address: SourceAddress, place: FilePlace) -> str | None:
    """The GTIDs of all transactions before a place that the log has; None on a server without GTIDs.

    A MySQL has no function for it, so its file is read up to the place.
    """
    if _kind(connection) is SourceKind.MARIADB:
        return _of_mariadb(connection, place.file, place.offset).text
    ((mode,),) = rows_of(connection, "SELECT @@GLOBAL.gtid_mode")
    if str(mode).upper() != "ON":
        return None
    before = _previous(connection, place.file).text
    return gtids_between(connection, address, before, FilePlace.of_file(place.file, FIRST, place.epoch), place)


def gtids_between(connection: Connection, address: SourceAddress, before: str, start: FilePlace, end: FilePlace) -> str:
    """`before`, with the transactions that begin in [start, end)."""
    found = parse_gtids(_kind(connection), before)
    for gtid, place, _ in _transactions(connection, address, start):
        if place.position >= end.position:
            break
        if gtid:
            found.add(gtid)
    return found.text


def require_continuable(connection: Connection, address: SourceAddress, gtids: str, *, position: str) -> None:
    """The server has all transactions that were captured, and still has all others in its log. `position`: up to which
    the former server's log was captured, for errors. Raises TransactionsMissing, LogPurged.
    """
    if _kind(connection) is SourceKind.MARIADB:
        ((newest,),) = rows_of(connection, "SELECT @@GLOBAL.gtid_binlog_pos")
        missing, purged = Domains(gtids).without(Domains(str(newest or ""))).text, ""
    else:
        ((executed, gone),) = rows_of(connection, "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
        captured = Intervals(gtids)
        missing = captured.without(Intervals(str(executed))).text
        purged = Intervals(str(gone)).without(captured).text
    if missing:
        raise TransactionsMissing(source=source_text(address), gtids=missing)
    if purged:
        raise _purged(address, position, f"has purged transactions that were not captured ({purged})")


def require_not_set_back(connection: Connection, address: SourceAddress, gtids: str) -> None:
    """The server, which was captured before, has all transactions that were captured. Its log may have begun again and
    be longer than before. Raises SourceSetBack. A domain that a MariaDB no longer has does not count.
    """
    if _kind(connection) is SourceKind.MARIADB:
        ((found,),) = rows_of(connection, "SELECT @@GLOBAL.gtid_binlog_state")
        missing = Domains(gtids).missing_from(str(found or ""))
    else:
        ((found,),) = rows_of(connection, "SELECT @@GLOBAL.gtid_executed")
        missing = Intervals(gtids).without(Intervals(str(found))).text
    if missing:
        raise SourceSetBack(source=source_text(address), found=str(found or "its start"), expected=missing)


def continued(connection: Connection, address: SourceAddress, gtids: str, *, epoch: int, position: str) -> Continued:
    """The place in this server's log from which on it has what was not captured. Raises as `require_continuable`."""
    require_continuable(connection, address, gtids, position=position)
    file, pending = _beginning(connection, address, gtids, position)
    first = behind = None
    again: Pending | None = None
    last = FilePlace.of_file(file, FIRST, epoch)
    for gtid, place, end in _transactions(connection, address, last):
        last = end
        if not place.offset:  # an event of no transaction
            continue
        if pending.take(gtid):
            behind = end if first is not None else None
        elif first is None:
            first, again = place, pending.copy()
        if first is not None and not pending:
            break
    if pending:
        raise TransactionsMissing(source=source_text(address), gtids=pending.text)
    place = first or last
    return Continued(place, gtids, again if behind is not None else None, behind or place)


def _beginning(connection: Connection, address: SourceAddress, gtids: str, position: str) -> tuple[str, Pending]:
    """The newest file that begins with captured transactions alone, and the captured ones that come in it or later."""
    kind, files = _kind(connection), list(file_sizes(connection))
    for file in reversed(files):
        if kind is SourceKind.MARIADB:
            before, captured = _of_mariadb(connection, file, FIRST), Domains(gtids)
            if captured.covers(before):
                return file, captured.pending(before)
        else:
            earlier = _previous(connection, file)
            if not earlier.without(Intervals(gtids)):
                ((gone,),) = rows_of(connection, "SELECT @@GLOBAL.gtid_purged")
                return file, PendingIntervals(Intervals(gtids).without(earlier).without(Intervals(str(gone))))
    oldest = files[0] if files else "none"
    raise _purged(address, position, f"has purged transactions that were not captured (its oldest log is {oldest})")


def _transactions(
    connection: Connection, address: SourceAddress, start: FilePlace
) -> Iterator[tuple[str, FilePlace, FilePlace]]:
    """GTID and place of each transaction, and the end of its first event. Other events have no GTID, the offset 0, and
    their end.
    """
    with closing(events_from(address, start, server=system_id_of(connection))) as events:
        for event in events:
            end = FilePlace.of_file(event.file, event.end, start.epoch)
            if event.header.kind in GTIDS:
                place = FilePlace.of_file(event.file, event.start, start.epoch)
                yield gtid_of(event.header, event.data).text, place, end
            else:
                yield "", FilePlace.of_file(event.file, 0, start.epoch), end


def _previous(connection: Connection, file: str) -> Intervals:
    """The GTIDs before a file of a MySQL, which its head has."""
    for row in rows_of(connection, f"SHOW BINLOG EVENTS IN %s LIMIT {_HEAD}", (file,)):
        if row[2] == "Previous_gtids":
            return Intervals(str(row[5]))
    return Intervals()


def _of_mariadb(connection: Connection, file: str, offset: int) -> Domains:
    ((found,),) = rows_of(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (file, offset))
    return Domains(str(found or ""))


def _kind(connection: Connection) -> SourceKind:
    return dialect_of(str(connection.get_server_info())).kind


def _purged(address: SourceAddress, position: str, problem: str) -> LogPurged:
    return LogPurged(source=source_text(address), problem=problem, position=position)
