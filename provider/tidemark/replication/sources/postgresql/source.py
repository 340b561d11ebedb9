"""PostgreSQL as a worker sees it: its catalog, publication and slot, for one replication."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from tidemark.errors import SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import FoundObject, LogPosition, Replication, Selection, SourceProblem
from tidemark.replication.model.source_discovery import SourceNames
from tidemark.replication.planning.positions import parse_lsn, position_of_lsn
from tidemark.replication.sources.postgresql import publication, slots, validation
from tidemark.replication.sources.postgresql.catalog import CatalogTable, discover, server_facts
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.existing_publication import existing_publication
from tidemark.replication.sources.postgresql.failures import source_text
from tidemark.replication.sources.postgresql.fingerprints import seen_tables
from tidemark.replication.sources.postgresql.publication import LOCK_PATIENCE, PublishedTable
from tidemark.replication.sources.postgresql.slots import SlotStatus
from tidemark.replication.sources.postgresql.snapshots import require_primary
from tidemark.replication.sources.postgresql.source_names import source_names

__all__ = ["PostgresSource"]

_RETAINED = 10 << 30  # bytes of log kept for a slot from which on somebody should look
_SAFE = 1 << 30  # bytes that may still be written before a slot is lost, below which somebody must


class PostgresSource:
    """The `Source` of a PostgreSQL. Its connections live as long as a call."""

    def __init__(self, address: SourceAddress, *, lock_patience: timedelta = LOCK_PATIENCE) -> None:
        self._address, self._lock_patience = address, lock_patience

    def system_id(self) -> str:
        """Of the cluster; a copy made by pg_basebackup has the same."""
        with connect(self._address) as connection:
            return server_facts(connection).system_id

    def names(self) -> SourceNames:
        """Without templates, and without schemas of the system."""
        with connect(self._address) as connection:
            return source_names(connection)

    def current_position(self, replication: Replication | None = None) -> LogPosition:
        """As of now, with commits that were confirmed before they were on disk. A message in the log does that, and
        gives an idle source's slot somewhere to go.
        """
        with connect(self._address) as connection:
            return slots.emit_heartbeat(connection, "capture")

    def parse_position(self, text: str, replication: Replication | None = None) -> LogPosition:
        """`16/B374D848`. Raises InvalidArgument."""
        return position_of_lsn(parse_lsn(text))

    def discover(self, replication: Replication) -> tuple[FoundObject, ...]:
        """The tables of "all tables", and those that the selection names without a `*`: a view, a foreign table, a
        partition.
        """
        numeric_as = replication.options.numeric_as
        with connect(self._address) as connection:
            found = discover(connection, numeric_as=numeric_as)
        return tuple(_found(one) for one in found if one.by_default or _is_named(replication.selection, one))

    def seen(self, replication: Replication, found: Sequence[FoundObject]) -> Mapping[str, SeenTable]:
        """By OID, as one statement after the other finds it."""
        with connect(self._address) as connection:
            tables = seen_tables(connection, (int(one.source_id) for one in found))
            if replication.options.publication is None:
                return tables
            entries = existing_publication(connection, replication.publication).tables
        return {
            oid: replace(table, entry=entries[int(oid)].entry if int(oid) in entries else "")
            for oid, table in tables.items()
        }

    def problems(self, replication: Replication, selected: Sequence[FoundObject]) -> tuple[SourceProblem, ...]:
        """Of the server, the rights and the tables, each with the statement that fixes it."""
        schemas = {one.source_id: one.schema for one in selected if one.unsupported is None}
        with connect(self._address) as connection:
            tables = [
                replace(one, schema=schemas[one.source_id]) for one in discover(connection) if one.source_id in schemas
            ]
            found = validation.validate(
                connection,
                tables,
                slot=replication.slot,
                publication=replication.publication,
                options=replication.options,
            )
        return tuple(SourceProblem(one.text, one.hinders, tuple(map(str, one.oids))) for one in found)

    def publish(
        self, replication: Replication, selected: Sequence[FoundObject], *, leave: Collection[str] = ()
    ) -> tuple[str, ...]:
        """The statements that were run. Raises ObjectNotReplicable; SourceLocked where a table stays locked."""
        if replication.options.publication is not None:
            return ()
        with connect(self._address) as connection:
            return publication.ensure_publication(
                connection,
                replication.publication,
                _to_publish(selected),
                patience=self._lock_patience,
                leave=[int(source_id) for source_id in leave],
            )

    def locked(self, replication: Replication, selected: Sequence[FoundObject]) -> frozenset[str]:
        """Tables in a queue for a lock are locked, too."""
        if replication.options.publication is not None:
            return frozenset()
        with connect(self._address) as connection:
            found = publication.locked_tables(connection, replication.publication, _to_publish(selected))
        return frozenset(map(str, found))

    def published(self, replication: Replication) -> frozenset[str]:
        """Tables with filtered rows or columns are left out, and all tables are if not all kinds of changes are
        published.
        """
        with connect(self._address) as connection:
            if replication.options.publication is not None:
                return frozenset(map(str, existing_publication(connection, replication.publication).whole))
            state = publication.publication_state(connection, replication.publication)
        tables = state.tables if state.plain else {}
        return frozenset(str(oid) for oid, (_, listed) in tables.items() if listed is None)

    def make_slot(self, replication: Replication, *, patience: timedelta) -> LogPosition:
        """Raises SlotBlocked, SlotForeign, SlotLost. Raises SourceRefused if an existing slot is to be read and does
        not exist, or has lost its log.
        """
        if replication.options.slot is not None:
            return slots.existing_slot(self._address, replication.slot)
        bound = timedelta(seconds=replication.options.gives_way_after)
        return slots.create_slot(self._address, replication.slot, patience=patience, bound=bound)

    def require_ours(self, replication: Replication) -> LogPosition:
        """Raises SourceIsAnother, SourceSetBack, SlotLost, SlotForeign, SlotAhead, SlotBusy, SourceRefused for a
        standby.
        """
        with connect(self._address) as connection:
            require_primary(connection)
            found = server_facts(connection).system_id
            if replication.system_id not in (None, found):
                raise SourceIsAnother(source=source_text(self._address), found=found, expected=replication.system_id)
            if replication.captured is not None:
                slots.require_not_set_back(connection, replication.captured)
            status = slots.slot_status(connection, replication.slot)
            return slots.require_ours(status, captured=replication.captured)

    def slot_position(self, replication: Replication) -> LogPosition | None:
        """None where there is none, or it is lost. Raises SlotForeign."""
        with connect(self._address) as connection:
            status = slots.slot_status(connection, replication.slot)
        return None if not status.exists or status.lost else slots.require_ours(status, idle=False)

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Raises SlotLost, SlotForeign, SlotBusy."""
        after = {} if replication.captured is None else {"after": replication.captured}
        with connect(self._address) as connection:
            return slots.has_changes(connection, replication.slot, replication.publication, until, **after)

    def gtids(self, replication: Replication, until: LogPosition) -> str:
        """None: the log belongs to one server."""
        return ""

    def advance(self, replication: Replication, to: LogPosition) -> None:
        """Raises SlotLost, SlotForeign, SlotBusy."""
        with connect(self._address) as connection:
            slots.advance_slot(connection, replication.slot, to)

    def alerts(self, replication: Replication) -> tuple[str, ...]:
        """In words; () where all is well. A slot that was made and is gone is one, too."""
        with connect(self._address) as connection:
            status = slots.slot_status(connection, replication.slot)
        return tuple(_alerts(status, made=replication.captured is not None))

    def drop_slot(self, replication: Replication) -> bool:
        """Raises SlotForeign, SlotBusy."""
        if replication.options.slot is not None:
            return False
        with connect(self._address) as connection:
            return slots.drop_slot(connection, replication.slot)

    def drop(self, replication: Replication) -> tuple[str, ...]:
        """Slot first: what it holds cannot be decoded without the publication."""
        options = replication.options
        slot, published = f"replication slot {replication.slot}", f"publication {replication.publication}"
        with connect(self._address) as connection:
            gone = options.slot is None and slots.drop_slot(connection, replication.slot)
            hidden = options.publication is None and publication.drop_publication(connection, replication.publication)
        return (
            *((f"dropped {slot}",) if gone else ()),
            *((f"kept {slot}, which keeps the log until somebody reads or drops it",) if options.slot else ()),
            *((f"dropped {published}",) if hidden else ()),
            *((f"kept {published}",) if options.publication else ()),
        )


def _to_publish(selected: Sequence[FoundObject]) -> list[PublishedTable]:
    return [PublishedTable(int(one.source_id), one.excluded) for one in selected if one.unsupported is None]


def _found(table: CatalogTable) -> FoundObject:
    """Generated columns are left out, like columns that nobody selects. This holds also for a column that is generated
    no more: the existing rows lack its values.
    """
    unsupported = None if table.problem is None else " ".join(filter(None, (f"{table.problem}.", table.remedy)))
    return FoundObject(
        table.name,
        table.source_id,
        table.schema,
        table.rows,
        table.generated,
        unsupported,
        generated=table.generated,
        parted=table.parted,
    )


def _is_named(selection: Selection, table: CatalogTable) -> bool:
    return table.name.text in selection.include


def _alerts(status: SlotStatus, *, made: bool = True) -> list[str]:
    alerts = []
    if made and not status.exists:
        alerts.append(f"Slot {status.name} is gone: what is committed now is kept for nobody. Recover the replication.")
    if status.wal_status in ("unreserved", "lost"):
        alerts.append(
            f"Slot {status.name} is {status.wal_status}: its log is about to be removed, or was. Capture now."
        )
    if status.safe_wal_size is not None and status.safe_wal_size < _SAFE:
        alerts.append(f"Slot {status.name} is lost after {status.safe_wal_size:,} more bytes of log. Capture now.")
    if status.retained_bytes > _RETAINED:
        alerts.append(f"The source keeps {status.retained_bytes:,} bytes of log for slot {status.name}.")
    return alerts
