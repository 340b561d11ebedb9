"""The problems that keep a server from being replicated, all of them at once, each with the statement that fixes it.

Looks only; nothing is changed or locked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, TypeVar

from tidemark.errors import SourceRefused
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.model.replication import FoundObject, Hinders, ReplicationOptions, SourceProblem
from tidemark.replication.planning.selection import mode_of
from tidemark.replication.planning.target_names import columns_in_the_way, table_of
from tidemark.replication.sources.mysql.catalog import ServerFacts, server_facts
from tidemark.replication.sources.mysql.connection import Connection, rows_of
from tidemark.replication.sources.mysql.log_files import log_end
from tidemark.replication.sources.mysql.log_stream import events_from

__all__ = ["SHORTEST_RETENTION", "problems_of", "problems_of_settings", "retention_of"]

SHORTEST_RETENTION = 24 * 3600  # seconds for which a server should keep its log
_DAY = 24 * 3600
Named = TypeVar("Named")


class _Setting(NamedTuple):
    """A variable that must have the value `wanted`. `why`: what its other values mean. A server without the variable
    has what is wanted, unless it is `needed`.
    """

    name: str
    wanted: str
    why: str
    remedy: str
    needed: bool = False


_SETTINGS = (
    _Setting("binlog_format", "ROW", "its log has statements in place of rows", "SET GLOBAL binlog_format = ROW"),
    _Setting("binlog_row_image", "FULL", "its log leaves out columns of rows", "SET GLOBAL binlog_row_image = FULL"),
    _Setting(
        "binlog_row_metadata",
        "FULL",
        "its log has no names of columns",
        "SET GLOBAL binlog_row_metadata = FULL",
        needed=True,
    ),
    _Setting(
        "binlog_row_value_options",
        "",
        "its log has parts of JSON documents",
        "SET GLOBAL binlog_row_value_options = ''",
    ),
    _Setting(
        "binlog_transaction_compression",
        "OFF",
        "its log has transactions that cannot be read here",
        "SET GLOBAL binlog_transaction_compression = OFF",
    ),
)
_SIZE_LIMITS = ("max_binlog_total_size", "binlog_space_limit")  # of MariaDB 11.4, which has both, and of Percona
_GTIDS = _Setting(
    "gtid_mode",
    "ON",
    "its log does not show which of its transactions are visible",
    "SET GLOBAL enforce_gtid_consistency = ON, then SET GLOBAL gtid_mode = OFF_PERMISSIVE, ON_PERMISSIVE and ON, one"
    " after the other",
)


def problems_of(
    connection: Connection, address: SourceAddress, selected: Sequence[FoundObject], options: ReplicationOptions
) -> tuple[SourceProblem, ...]:
    """Of the server, the user's rights, and the selected tables; () if there is none."""
    facts = server_facts(connection)
    if facts.version < facts.dialect.oldest:
        oldest = ".".join(map(str, facts.dialect.oldest))
        what = f"The server is {facts.dialect.name} {facts.version_text}, older than {oldest}"
        return (SourceProblem(f"{what}: Upgrade the server.", Hinders.SERVER),)
    if facts.variable("log_bin") not in ("ON", "1"):
        remedy = "Start it with log_bin, binlog_format = ROW and binlog_row_metadata = FULL"
        return (SourceProblem(f"The server writes no binary log: {remedy}", Hinders.SERVER),)
    taken = [one for one in selected if one.unsupported is None]
    return (
        *problems_of_settings(facts),
        *_of_rights(connection, address, facts),
        *_of_filters(connection, facts, taken),
        *_of_names(taken, options.target_table),
        *_of_own_columns(taken, options),
    )


def retention_of(facts: ServerFacts) -> int | None:
    """Seconds for which the server keeps its log; None where age removes nothing."""
    seconds = int(facts.variables.get("binlog_expire_logs_seconds", "0") or 0)
    days = float(facts.variables.get("expire_logs_days", "0") or 0)
    purges = facts.variable("binlog_expire_logs_auto_purge") != "OFF"
    return (seconds or int(days * _DAY) or None) if purges else None


def problems_of_settings(facts: ServerFacts) -> Iterator[SourceProblem]:
    """Of the server's variables alone."""
    wanted = (*_SETTINGS, _GTIDS) if facts.dialect.kind is SourceKind.MYSQL else _SETTINGS
    for one in wanted:
        there = one.name in facts.variables
        found = facts.variable(one.name)
        if (there or one.needed) and found != one.wanted:
            what = f"The server has {one.name} = {found or 'nothing'}: {one.why}"
            yield SourceProblem(f"{what}: {one.remedy}, also in its option file", Hinders.SERVER)
    kept = retention_of(facts)
    if kept is not None and kept < SHORTEST_RETENTION:
        remedy = "SET GLOBAL binlog_expire_logs_seconds = 604800, also in its option file"
        text = f"The server keeps its binary log for {kept} seconds only: {remedy}"
        yield SourceProblem(text, Hinders.SERVER)
    limit = next((name for name in _SIZE_LIMITS if facts.variable(name) not in ("", "0")), None)
    if limit is not None:
        what = f"The server has {limit} = {facts.variable(limit)}: its log is removed by size, captured or not"
        yield SourceProblem(f"{what}: SET GLOBAL {limit} = 0, also in its option file", Hinders.SERVER)
    updates = facts.variable("log_replica_updates") or facts.variable("log_slave_updates")
    if updates == "OFF" and facts.variable("read_only") == "ON":
        remedy = "Start it with log_replica_updates (log_slave_updates), or connect to its primary"
        yield SourceProblem(f"The server is a replica whose log lacks what it applies: {remedy}", Hinders.SERVER)


def _of_rights(connection: Connection, address: SourceAddress, facts: ServerFacts) -> Iterator[SourceProblem]:
    """By doing what a capture and a backfill do."""
    import pymysql

    try:
        rows_of(connection, "SELECT 1 FROM information_schema.INNODB_TRX LIMIT 1")
    except pymysql.err.OperationalError:
        remedy = f"GRANT PROCESS ON *.* TO {_account(facts.user)}"
        yield SourceProblem(f"User {facts.user} may not see who waits for a backfill: {remedy}", Hinders.SERVER)

    monitor = "BINLOG MONITOR" if facts.dialect.kind is SourceKind.MARIADB else "REPLICATION CLIENT"
    try:
        end = log_end(connection, address)
        rows_of(connection, "SHOW BINARY LOGS")
    except pymysql.err.OperationalError:
        remedy = f"GRANT {monitor} ON *.* TO {_account(facts.user)}"
        yield SourceProblem(f"User {facts.user} may not see the binary log: {remedy}", Hinders.SERVER)
        return
    try:
        with closing(events_from(address, end)) as events:
            next(events, None)
    except SourceRefused as error:
        remedy = f"GRANT REPLICATION SLAVE ON *.* TO {_account(facts.user)}"
        problem = error.facts.get("problem")
        yield SourceProblem(f"User {facts.user} may not read the binary log ({problem}): {remedy}", Hinders.SERVER)


def _of_filters(connection: Connection, facts: ServerFacts, taken: Sequence[FoundObject]) -> Iterator[SourceProblem]:
    """Schemas that the server leaves out of its log."""
    import pymysql

    for statement in facts.dialect.log_status:
        try:
            found = rows_of(connection, statement)
        except pymysql.err.MySQLError:
            continue
        only, without = (_listed(str(found[0][place] or "")) if found else frozenset() for place in (2, 3))
        for one in taken:
            schema = one.name.schema
            if (only and schema not in only) or schema in without:
                text = f"{one.name.text} is left out of the binary log (binlog_do_db, binlog_ignore_db)"
                yield SourceProblem(f"{text}: Take the filter out of its option file.", Hinders.TABLE, (one.source_id,))
        return


def _listed(text: str) -> frozenset[str]:
    return frozenset(filter(None, (one.strip() for one in text.split(","))))


def _of_names(taken: Sequence[FoundObject], target_table: str) -> Iterator[SourceProblem]:
    """Targets and columns in Delta have names that differ by more than case."""
    remedy = "Rename one of them, or take one out of the replication."
    for clash in _clashes(taken, lambda one: table_of(one.name, target_table)):
        both = " and ".join(one.name.text for one in clash)
        text = f"{both} would have one target, as their names differ by case, a slash, or where the schema ends only"
        yield SourceProblem(f"{text}: {remedy}", Hinders.TABLE, tuple(one.source_id for one in clash))
    for one in taken:
        for columns in _clashes(one.schema.columns, lambda column: column.name):
            both = " and ".join(column.name for column in columns)
            text = f"{one.name.text} has columns that differ by case only, {both}: {remedy}"
            yield SourceProblem(text, Hinders.TABLE, (one.source_id,))


def _of_own_columns(taken: Sequence[FoundObject], options: ReplicationOptions) -> Iterator[SourceProblem]:
    """A target has columns that say of each row what it is."""
    for one in taken:
        if names := columns_in_the_way(one.schema, mode_of(options, one.name, one.schema)):
            excluded = " and ".join(f"{one.name.text}.{name}" for name in names)
            text = f"{one.name.text} has columns that its target has for itself, {', '.join(names)}"
            remedy = f"Exclude {excluded} from the replication, or rename it."
            yield SourceProblem(f"{text}: {remedy}", Hinders.TABLE, (one.source_id,))


def _clashes(found: Sequence[Named], name: Callable[[Named], str]) -> list[list[Named]]:
    by_name: Mapping[str, list[Named]] = defaultdict(list)
    for one in found:
        by_name[name(one).lower()].append(one)
    return [same for same in by_name.values() if len(same) > 1]


def _account(user: str) -> str:
    name, _, host = user.rpartition("@")
    return f"'{name}'@'{host}'"
