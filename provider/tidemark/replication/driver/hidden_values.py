"""Columns of a copy as the lake has them: which, and hidden by the source itself, so that nothing else has them."""

from __future__ import annotations

from tidemark.errors import ObjectNotReplicable
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.catalog import SeenColumn, SeenTable
from tidemark.replication.model.jobs import BackfillObject
from tidemark.replication.model.replication import Shown, TableSchema
from tidemark.replication.planning.hiding import require_secret
from tidemark.replication.planning.seen_tables import carried, hidden
from tidemark.replication.planning.showing import chosen_columns, shown
from tidemark.replication.planning.unnumbered import unsure_columns
from tidemark.replication.sources.fetches import Fetch
from tidemark.replication.sources.postgresql.pinned import PinnedTable, hash_properties, jdbc_properties

__all__ = ["chosen", "reading_properties", "secret_of", "seen_of"]


def chosen(request: BackfillObject, found: TableSchema) -> TableSchema:
    """The columns of a copy, by their names of now and their numbers. Raises ObjectNotReplicable where a part of the
    key would not tell rows apart.
    """
    name = request.object.name
    known = (*(column.name for column in request.object.schema.columns), *request.excluded)
    unsure = unsure_columns(request.rules, name, found, known)
    columns = chosen_columns(request.rules, name, found, (*request.excluded, *unsure))
    masked = [one.name for one in columns.schema.columns if one.key and one.shown is Shown.MASKED]
    lost = [*(one.name for one in columns.left if one.key), *masked]
    if lost:
        problem = f"key columns are excluded or masked ({', '.join(lost)}), without which its rows are not known"
        raise ObjectNotReplicable(object=name.text, problem=problem, remedy="Include or hash them.")
    return columns.schema


def secret_of(address: SourceAddress, schema: TableSchema, mark: str | None) -> str | None:
    """The secret for the hashed columns of a copy; None if no column is hashed. Raises InvalidArgument if the secret is
    missing, or another than that of the `mark`.
    """
    if not any(column.shown is Shown.HASHED for column in schema.columns):
        return None
    return require_secret(address.hash_secret, mark, why="hash_columns")


def reading_properties(address: SourceAddress, table: PinnedTable, fetch: Fetch, mark: str | None) -> dict[str, str]:
    """The driver's properties, with the secret if anything is hashed. Raises what `secret_of` does."""
    known = jdbc_properties(address, table.readers, fetch, table.bound)
    secret = secret_of(address, table.schema, mark)
    if secret is None:
        return known
    more = hash_properties(secret)
    return {**known, **more, "options": f"{known.get('options', '')} {more['options']}".strip()}


def seen_of(request: BackfillObject, seen: SeenTable | None) -> SeenTable | None:
    """The part of the catalog at a snapshot that the store keeps: no value of a column that is hidden."""

    def plain(column: SeenColumn) -> bool:
        return shown(request.rules, request.object.name, column.name, column.number) is Shown.PLAIN

    return None if seen is None else hidden(carried(None, seen), plain)
