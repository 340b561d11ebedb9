"""A table of a PostgreSQL as of one exact position, read by Spark in several sessions at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.errors import BackfillGaveWay, TidemarkError
from tidemark.model.source_address import SourceAddress
from tidemark.replication.driver.copies import BEHIND, RowsTooWide, TableCopy
from tidemark.replication.driver.hidden_values import chosen, reading_properties
from tidemark.replication.driver.source_rows import Reading, copied_rows
from tidemark.replication.driver.uuids import uuid_of_place
from tidemark.replication.driver.values import spark_type, written_value
from tidemark.replication.model.jobs import BackfillObject
from tidemark.replication.model.replication import Column as SourceColumn
from tidemark.replication.planning.events import EVENT_NAMESPACE
from tidemark.replication.sources.fetches import Fetch, assumed_width
from tidemark.replication.sources.postgresql.pinned import PinnedTable, interruption, is_native, jdbc_url, pinned_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["postgresql_copy", "source_rows"]

_OF_DRIVER = re.compile(rf"org\.postgresql\.util\.PSQLException{BEHIND}([^\n]+)")
_WIDER = re.compile(r"maxResultBuffer|Ran out of memory retrieving query results")


@contextmanager
def postgresql_copy(request: BackfillObject, address: SourceAddress, patience: timedelta) -> Iterator[TableCopy]:
    """The table as of an exported snapshot, which is held while the context lasts. Raises what `pinned_table` does."""
    name = request.object.name.text
    table = pinned_table(
        address,
        int(request.object.source_id),
        name=name,
        patience=patience,
        numeric_as=request.numeric_as,
        choose=partial(chosen, request),
        bound=timedelta(seconds=request.gives_way_after),
    )
    with table as pinned:
        yield TableCopy(
            position=pinned.snapshot.position,
            schema=pinned.schema,
            seen=pinned.seen,
            mean=pinned.sizes.mean,
            widest=lambda careful: assumed_width(pinned.sizes, careful=careful),
            rows=lambda session, careful: source_rows(session, request, address, pinned, careful=careful),
            failure=lambda text: _failure(text, name, pinned.gave_way()),
        )


def source_rows(
    session: SparkSession, request: BackfillObject, address: SourceAddress, table: PinnedTable, *, careful: bool = False
) -> DataFrame:
    """`copied_rows` of the table. Raises InvalidArgument if columns are hashed and the secret for that is missing, or
    another.
    """
    reading = Reading(
        schema=table.schema,
        sizes=table.sizes,
        position=table.snapshot.position,
        taken_at=table.taken_at,
        read=partial(_read, session, request, address, table),
        value=partial(_value, request, table),
        uuid=_uuid(request, table),
    )
    return copied_rows(request, reading, careful=careful)


def _read(
    session: SparkSession, request: BackfillObject, address: SourceAddress, table: PinnedTable, fetch: Fetch
) -> DataFrame:
    reader = session.read.option("driver", "org.postgresql.Driver")
    ranges = table.ranges(request.partitions)
    whole = fetch.condition == "true"
    held = table.held(fetch.rows)
    return reader.option("sessionInitStatement", "; ".join(table.statements)).jdbc(
        jdbc_url(address),
        f"({table.query(measured=not whole)}) AS source",
        predicates=[f"{held} AND {one}" if whole else f"{held} AND {one} AND {fetch.condition}" for one in ranges],
        properties=reading_properties(address, table, fetch, request.rules.hash_mark),
    )


def _value(request: BackfillObject, table: PinnedTable, number: int, column: SourceColumn) -> Column:
    text = F.col(f"c{number}")
    if is_native(column):
        return text.cast(spark_type(column.type))
    at = F.lit(f"{table.snapshot.position.commit}/0")
    return written_value(
        text, column, invalid_values=request.invalid_values, object_name=request.object.name.text, position=at
    )


def _uuid(request: BackfillObject, table: PinnedTable) -> Column:
    """From the snapshot and the row's place in it: a second reading of the same snapshot gives it again."""
    about = F.lit(f"{request.system_id}|{table.snapshot.position.commit}|{request.object.source_id}|")
    part = F.col("part") if table.parts > 1 else F.lit("")
    return uuid_of_place(EVENT_NAMESPACE, F.concat(about, part), F.col("place"))


def _failure(text: str, name: str, waited: str | None) -> TidemarkError | None:
    """The error that the copy's query failed with, from what Spark says; None if it is not of the source."""
    if waited is not None:
        return BackfillGaveWay(object=name, problem=waited)
    if _WIDER.search(text):
        return RowsTooWide(object=name, problem="its rows are wider than a sample of them")
    of_driver = _OF_DRIVER.search(text)
    return None if of_driver is None else interruption(name, of_driver[1].strip())
