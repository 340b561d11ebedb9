"""The copy of a table by the kind of its source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING

from tidemark.errors import NotYetSupported
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.driver.copies import TableCopy
from tidemark.replication.model.jobs import BackfillObject

if TYPE_CHECKING:
    from tidemark.jobs.workspace import Workspace

__all__ = ["table_copy"]


def _nothing() -> None:
    return None


def table_copy(
    request: BackfillObject,
    address: SourceAddress,
    patience: timedelta,
    workspace: Workspace,
    stop_if_due: Callable[[], None] = _nothing,
) -> AbstractContextManager[TableCopy]:
    """The object, held in its source while the context lasts, if its kind holds it. `patience`: how long transactions
    of the source may hold the beginning up. `workspace`: for rows that one session has to read.

    Raises NotYetSupported, BackfillGaveWay, ObjectNotReplicable, SourceUnreachable, SourceRefused.
    """
    if address.kind is SourceKind.POSTGRESQL:
        from tidemark.replication.driver.postgresql_copy import postgresql_copy

        return postgresql_copy(request, address, patience)
    if address.kind in (SourceKind.MYSQL, SourceKind.MARIADB):
        from tidemark.replication.driver.mysql_copy import mysql_copy

        return mysql_copy(request, address, workspace, stop_if_due)
    raise NotYetSupported(
        feature=f"A backfill from a source of kind {address.kind}", instead="PostgreSQL, MySQL and MariaDB have it."
    )
