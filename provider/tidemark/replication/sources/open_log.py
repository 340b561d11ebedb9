"""The log of a source by its kind, for a run of capture."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tidemark.errors import NotYetSupported
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.planning.events import TextOf
from tidemark.replication.sources.change_log import ChangeLog

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CaptureEvents

__all__ = ["open_change_log"]


def open_change_log(
    request: CaptureEvents, address: SourceAddress, hashed: TextOf | None
) -> AbstractContextManager[ChangeLog]:
    """The log of the source at that address; `hashed`: how values of hashed columns are.

    Raises SourceIsAnother, SourceUnreachable, SourceRefused, SourceDriverNotInstalled, NotYetSupported.
    """
    if address.kind is SourceKind.POSTGRESQL:
        from tidemark.replication.sources.postgresql.capturing import postgres_log

        return postgres_log(request, address, hashed)
    if address.kind.logs_by_file:
        from tidemark.replication.sources.mysql.capturing import binary_log

        return binary_log(request, address, hashed)
    if address.kind is SourceKind.DEBEZIUM:
        from tidemark.replication.sources.debezium.capturing import debezium_log

        return debezium_log(request, address, hashed)
    if address.kind is SourceKind.EVENT_FILES:
        from tidemark.replication.sources.event_files.capturing import event_file_log

        return event_file_log(request, address, hashed)
    raise NotYetSupported(feature=f"A source of kind {address.kind}", instead="PostgreSQL is.")
