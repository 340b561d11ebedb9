"""The problems that keep a database from being replicated, all of them at once, each with the statement that fixes it.

Looks only; nothing is changed or locked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tidemark.errors import ReplicationError
from tidemark.replication.model.replication import Hinders, ReplicationOptions
from tidemark.replication.planning.selection import mode_of
from tidemark.replication.planning.target_names import columns_in_the_way, table_of
from tidemark.replication.sources.postgresql.catalog import CatalogTable, ServerFacts, server_facts
from tidemark.replication.sources.postgresql.existing_publication import (
    ExistingPublication,
    PublishedEntry,
    existing_publication,
)
from tidemark.replication.sources.postgresql.names import literal, qualified, quoted
from tidemark.replication.sources.postgresql.publication import PublicationState, publication_state
from tidemark.replication.sources.postgresql.slots import SlotStatus, creation_of, require_ours, slot_status

if TYPE_CHECKING:
    import psycopg2

Named = TypeVar("Named")

__all__ = ["OLDEST_VERSION", "Problem", "validate"]

OLDEST_VERSION = 130000
_RIGHTS = """
SELECT r.rolsuper OR r.rolreplication
       OR EXISTS (SELECT FROM pg_roles g WHERE g.rolname = 'rds_replication' AND pg_has_role(r.oid, g.oid, 'MEMBER')),
       has_database_privilege(current_database(), 'CREATE'),
       EXISTS (SELECT FROM pg_roles g WHERE g.rolname = 'rds_replication')
FROM pg_roles r WHERE r.rolname = current_user
"""
_TABLE_RIGHTS = """
SELECT c.oid::bigint, has_schema_privilege(c.relnamespace, 'USAGE'), pg_has_role(c.relowner, 'USAGE'),
       row_security_active(c.oid),
       ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT'))
FROM pg_class c WHERE c.oid = ANY(%s::oid[])
"""


_IDLE_SLOTS = "or drop slots that nobody reads: SELECT slot_name FROM pg_replication_slots WHERE NOT active"


@dataclass(frozen=True)
class Problem:
    """`what` is wrong with which `object` (a table, the server, a slot …), and SQL or an act that fixes it. `oids`: of
    the tables that it is about.
    """

    object: str
    what: str
    remedy: str
    hinders: Hinders = Hinders.SERVER
    oids: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """All of it in one line."""
        return f"{self.object} {self.what}: {self.remedy}"


@dataclass(frozen=True)
class _Rights:
    replication: bool
    create: bool
    managed: bool


def validate(
    connection: psycopg2.extensions.connection,
    tables: Sequence[CatalogTable],
    *,
    slot: str,
    publication: str,
    options: ReplicationOptions,
) -> tuple[Problem, ...]:
    """The problems of the server, the user's rights, these tables for targets of `options`, and the slot and
    publication of these names. The tables are those that are selected, without the columns that are not. Slot and
    publication count if they exist; () if there is no problem.

    Server and rights come first: without them the rest may be unknown.
    """
    facts = server_facts(connection)
    if facts.version < OLDEST_VERSION:
        what = f"is PostgreSQL {facts.version // 10000}, older than {OLDEST_VERSION // 10000}"
        return (Problem("The server", what, "Upgrade the server."),)
    status, published = slot_status(connection, slot), publication_state(connection, publication)
    existing = None if options.publication is None else existing_publication(connection, publication)
    return (
        *_server_problems(facts, status),
        *_right_problems(connection, facts, published, existing),
        *_slot_problems(facts, status, published, publication),
        *(
            _publication_problems(facts, published, publication)
            if existing is None
            else _existing_publication_problems(existing, publication, tables)
        ),
        *(_missing_slot(status) if options.slot is not None else ()),
        *_table_problems(connection, facts, tables, published, existing),
        *_name_problems(tables, options.target_table),
        *_own_column_problems(tables, options),
    )


def _server_problems(facts: ServerFacts, status: SlotStatus) -> Iterator[Problem]:
    if facts.in_recovery:
        yield Problem("The server", "is a standby: it can make no publication", "Connect to the primary.")
    if facts.wal_level != "logical":
        remedy = "ALTER SYSTEM SET wal_level = logical; -- then restart the server"
        yield Problem("The server", f"has wal_level = {facts.wal_level}, which cannot be decoded", remedy)
    if facts.used_slots + (not status.exists) + 1 > facts.max_slots:
        what = (
            f"has {facts.max_slots} replication slots, {facts.used_slots} of them in use; one is needed, and one more"
        )
        raised = f"ALTER SYSTEM SET max_replication_slots = {facts.max_slots + 10}; -- then restart the server"
        yield Problem("The server", f"{what} while an object is backfilled", f"{raised}; {_IDLE_SLOTS}")
    if facts.used_senders + 2 > facts.max_senders:
        what = f"has {facts.max_senders} WAL senders, {facts.used_senders} of them in use"
        remedy = f"ALTER SYSTEM SET max_wal_senders = {facts.max_senders + 10}; -- then restart the server"
        yield Problem("The server", f"{what}; capture and backfill need one each", remedy)


def _right_problems(
    connection: psycopg2.extensions.connection,
    facts: ServerFacts,
    published: PublicationState,
    existing: ExistingPublication | None,
) -> Iterator[Problem]:
    with connection.cursor() as cursor:
        cursor.execute(_RIGHTS)
        rights = _Rights(*cursor.fetchone())
    user = quoted(facts.user)
    if not rights.replication:
        remedy = f"GRANT rds_replication TO {user}" if rights.managed else f"ALTER ROLE {user} REPLICATION"
        yield Problem(f"Role {facts.user}", "may not read the log", remedy)
    if not rights.create and not published.exists and existing is None:
        remedy = f"GRANT CREATE ON DATABASE {quoted(facts.database)} TO {user}"
        yield Problem(f"Role {facts.user}", f"may not create a publication in database {facts.database}", remedy)


def _slot_problems(
    facts: ServerFacts, status: SlotStatus, published: PublicationState, publication: str
) -> Iterator[Problem]:
    if not status.exists:
        return
    try:
        require_ours(status, idle=False)
    except ReplicationError as error:
        facts_of = error.facts
        remedy = facts_of.get("remedy") or "Recover the replication from an explicit position."
        yield Problem(f"Replication slot {status.name}", str(facts_of["problem"]), str(remedy), Hinders.REPLICATION)
        return
    if not published.exists:
        what = f"has no publication any more: what it holds was written without {publication}, and cannot be decoded"
        remedy = f"SELECT pg_drop_replication_slot({literal(status.name)}); -- then recover the replication"
        yield Problem(f"Replication slot {status.name}", what, remedy, Hinders.REPLICATION)


def _missing_slot(status: SlotStatus) -> Iterator[Problem]:
    """Told behind the publication, without which the log of an older slot could not be decoded."""
    if not status.exists:
        yield Problem(f"Replication slot {status.name}", "does not exist", creation_of(status), Hinders.REPLICATION)


def _existing_publication_problems(
    existing: ExistingPublication, name: str, tables: Sequence[CatalogTable]
) -> Iterator[Problem]:
    if not existing.exists:
        listed = ", ".join(f"ONLY {qualified(table.name)}" for table in tables if table.problem is None)
        remedy = f"CREATE PUBLICATION {quoted(name)} FOR TABLE {listed} WITH (publish_via_partition_root = true)"
        yield Problem(f"Publication {name}", "does not exist", remedy, Hinders.REPLICATION)
        return
    if not existing.complete:
        what = "does not publish all of insert, update, delete and truncate"
        remedy = f"ALTER PUBLICATION {quoted(name)} SET (publish = 'insert, update, delete, truncate')"
        yield Problem(f"Publication {name}", what, remedy, Hinders.REPLICATION)
    for table in tables:
        if table.problem is None:
            yield from _unpublished(table, existing.tables.get(table.oid), quoted(name))


def _unpublished(table: CatalogTable, entry: PublishedEntry | None, publication: str) -> Iterator[Problem]:
    alter, only = f"ALTER PUBLICATION {publication}", f"ONLY {qualified(table.name)}"
    if entry is None and table.parted:
        remedy = f"{alter} SET (publish_via_partition_root = true); -- and: {alter} ADD TABLE {only}"
        yield _of_table(table, f"is not published under its own name by publication {publication}", remedy)
    elif entry is None:
        yield _of_table(table, f"is not in publication {publication}", f"{alter} ADD TABLE {only}")
    elif not entry.whole:
        without = "some of its rows" if entry.filtered else f"its columns {', '.join(entry.lacking)}"
        remedy = f"{alter} DROP TABLE {only}; {alter} ADD TABLE {only}"
        yield _of_table(table, f"is published by publication {publication} without {without}", remedy)


def _publication_problems(facts: ServerFacts, published: PublicationState, name: str) -> Iterator[Problem]:
    if published.exists and not published.alterable:
        remedy = f"ALTER PUBLICATION {quoted(name)} OWNER TO {quoted(facts.user)}"
        yield Problem(f"Publication {name}", f"belongs to {published.owner}", remedy, Hinders.REPLICATION)
    if published.wide:
        what = "publishes tables that nobody listed, also such as the application could then not update"
        yield Problem(f"Publication {name}", what, f"DROP PUBLICATION {quoted(name)}", Hinders.REPLICATION)


def _table_problems(
    connection: psycopg2.extensions.connection,
    facts: ServerFacts,
    tables: Sequence[CatalogTable],
    published: PublicationState,
    existing: ExistingPublication | None,
) -> Iterator[Problem]:
    with connection.cursor() as cursor:
        cursor.execute(_TABLE_RIGHTS, ([table.oid for table in tables],))
        rights = {oid: tuple(rest) for oid, *rest in cursor.fetchall()}
    for table in tables:
        if table.problem is not None:
            yield _of_table(table, table.problem, str(table.remedy))
        elif table.oid not in rights:
            yield _of_table(table, "was dropped", "Take it out of the replication.", Hinders.BACKFILL)
        else:
            usage, owned, filtered, unreadable = rights[table.oid]
            publishable = owned or table.oid in published.tables or existing is not None
            yield from _rights_to(table, facts, (usage, publishable, filtered, unreadable))


def _rights_to(
    table: CatalogTable, facts: ServerFacts, rights: tuple[bool, bool, bool, list[str]]
) -> Iterator[Problem]:
    usage, publishable, filtered, unreadable = rights
    name, user = qualified(table.name), quoted(facts.user)
    if not usage:
        remedy = f"GRANT USAGE ON SCHEMA {quoted(table.name.schema)} TO {user}"
        what = f"is in schema {table.name.schema}, which {facts.user} may not use"
        yield _of_table(table, what, remedy, Hinders.BACKFILL)
    wanted = {column.name for column in table.schema.columns}
    if hidden := [column for column in unreadable if column in wanted]:
        which = "" if len(hidden) == len(wanted) else f"({', '.join(map(quoted, hidden))}) "
        remedy = f"GRANT SELECT {which}ON {name} TO {user}"
        yield _of_table(table, f"may not be read by {facts.user}", remedy, Hinders.BACKFILL)
    if not publishable:
        remedy = f"GRANT {quoted(table.owner)} TO {user}; -- or: ALTER TABLE {name} OWNER TO {user}"
        yield _of_table(table, f"belongs to {table.owner}: only its owner may publish it", remedy)
    if filtered:
        what = f"has row security that hides rows from {facts.user}: a backfill would miss them"
        yield _of_table(table, what, f"ALTER ROLE {user} BYPASSRLS", Hinders.BACKFILL)


def _of_table(table: CatalogTable, what: str, remedy: str, hinders: Hinders = Hinders.TABLE) -> Problem:
    return Problem(table.name.text, what, remedy, hinders, (table.oid,))


def _name_problems(tables: Sequence[CatalogTable], target_table: str) -> Iterator[Problem]:
    """Targets and columns in Delta have names that differ by more than case."""
    remedy = "Rename one of them, or take one out of the replication."
    for clash in _clashes(tables, lambda table: table_of(table.name, target_table)):
        both = " and ".join(table.name.text for table in clash)
        what = "would have one target, as their names differ by case, a slash, or where the schema ends only"
        yield Problem(both, what, remedy, Hinders.TABLE, tuple(table.oid for table in clash))
    for table in tables:
        for columns in _clashes(table.schema.columns, lambda column: column.name):
            both = " and ".join(column.name for column in columns)
            yield _of_table(table, f"has columns that differ by case only, {both}", remedy)


def _own_column_problems(tables: Sequence[CatalogTable], options: ReplicationOptions) -> Iterator[Problem]:
    """A target has columns that say of each row what it is."""
    for table in tables:
        if names := columns_in_the_way(table.schema, mode_of(options, table.name, table.schema)):
            excluded = " and ".join(f"{table.name.text}.{name}" for name in names)
            remedy = f"Exclude {excluded} from the replication, or rename it."
            yield _of_table(table, f"has columns that its target has for itself, {', '.join(names)}", remedy)


def _clashes(found: Sequence[Named], name: Callable[[Named], str]) -> list[list[Named]]:
    by_name: Mapping[str, list[Named]] = defaultdict(list)
    for one in found:
        by_name[name(one).lower()].append(one)
    return [same for same in by_name.values() if len(same) > 1]
