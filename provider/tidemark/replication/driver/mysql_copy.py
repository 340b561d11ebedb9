"""A table of a MySQL or a MariaDB, held as it is and read by Spark in several sessions at once.

A table without a key, and the rows of an append-only target, are read by one session of this process.

MariaDB's driver of JDBC reads both databases. It has to be on the class path of Spark: `MARIADB_PACKAGE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.errors import BackfillGaveWay, BackfillInterrupted, SourceDriverNotInstalled, TidemarkError
from tidemark.model.source_address import SourceAddress
from tidemark.model.spark import MARIADB_PACKAGE
from tidemark.replication.driver.copies import BEHIND, TableCopy
from tidemark.replication.driver.hidden_values import chosen, secret_of
from tidemark.replication.driver.source_rows import Reading, copied_rows
from tidemark.replication.driver.spooled_rows import spooled
from tidemark.replication.driver.uuids import uuid5
from tidemark.replication.driver.values import spark_type, written_value
from tidemark.replication.model.jobs import BackfillObject
from tidemark.replication.model.replication import Column as SourceColumn
from tidemark.replication.model.replication import TypeKind, WriteMode
from tidemark.replication.planning.events import EVENT_NAMESPACE
from tidemark.replication.planning.hiding import pads_of
from tidemark.replication.planning.positions import position_text
from tidemark.replication.sources.fetches import MOST_ROWS, Fetch, RowSizes, assumed_width
from tidemark.replication.sources.mysql.connection import SESSION
from tidemark.replication.sources.mysql.dialects import MYSQL
from tidemark.replication.sources.mysql.held import HeldTable, fails_unless_held, held_table, still_held
from tidemark.replication.sources.mysql.jdbc import jdbc_url, tls_properties
from tidemark.replication.sources.mysql.names import quoted
from tidemark.replication.sources.mysql.reading import INNER, OUTER, as_read, is_native, row_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["mysql_copy"]

_DRIVER = "org.mariadb.jdbc.Driver"
_OF_DRIVER = re.compile(rf"java\.sql\.(?:SQL\w+|BatchUpdateException){BEHIND}([^\n]+)")
_NO_DRIVER = re.compile(rf"ClassNotFoundException{BEHIND}{re.escape(_DRIVER)}")
_ENDED = re.compile(r"out of range in 'exp|was killed|Table definition has changed|Lock wait timeout")


@contextmanager
def mysql_copy(
    request: BackfillObject, address: SourceAddress, workspace: Workspace, stop_if_due: Callable[[], None]
) -> Iterator[TableCopy]:
    """The table while a session holds its definition. Rows of a mirror with a key are of the position or later, and
    later events complete them. All others are exactly of the position. Raises what `held_table` does.
    """
    name = request.object.name.text
    table = held_table(
        address,
        request.object.source_id,
        name=name,
        marker=f"tidemark-{request.object.uid[:36]}-{request.number}",
        choose=partial(chosen, request),
        partitions=request.partitions,
        expected=request.expected_rows,
        bound=timedelta(seconds=request.gives_way_after),
        server=request.system_id or None,
        epoch=request.epoch,
        keeps_rows=request.object.mode is WriteMode.APPEND_ONLY,
    )
    with table as held:
        rows = partial(_rows, request, address, held)
        pinned = partial(_pinned, request, address, held, workspace, stop_if_due)
        yield TableCopy(
            position=held.position,
            schema=held.schema,
            seen=None,
            mean=held.sizes.mean,
            widest=lambda careful: assumed_width(held.sizes, careful=careful),
            rows=rows if held.pinned is None else pinned,
            failure=lambda text: _failure(text, name, held.gave_way()),
        )


def _rows(
    request: BackfillObject, address: SourceAddress, table: HeldTable, session: SparkSession, careful: bool
) -> DataFrame:
    read = partial(_read, session, request, address, table)
    return copied_rows(request, _reading(request, table, table.sizes, read), careful=careful)


def _pinned(
    request: BackfillObject,
    address: SourceAddress,
    table: HeldTable,
    workspace: Workspace,
    stop_if_due: Callable[[], None],
    session: SparkSession,
    careful: bool,
) -> DataFrame:
    """Read when it is asked for. Raises BackfillGaveWay, BackfillInterrupted."""
    if table.pinned is None:
        raise AssertionError("the table is read by one session")
    query = f"SELECT {', '.join(_values(table))} FROM {table.source} WHERE {still_held(table.marker, MOST_ROWS)}"
    chunks = table.pinned.chunks(
        query,
        first=f"SELECT {fails_unless_held(table.marker)}",
        variables=_pads(request, address, table),
        gave_way=table.gave_way,
    )
    with closing(chunks):
        rows = spooled(session, workspace, table.schema.columns, chunks, stop_if_due)
    return copied_rows(request, _reading(request, table, RowSizes(), lambda _: rows), careful=False)


def _reading(request: BackfillObject, table: HeldTable, sizes: RowSizes, read: Callable[[Fetch], DataFrame]) -> Reading:
    return Reading(
        schema=table.schema,
        sizes=sizes,
        position=table.position,
        taken_at=table.taken_at,
        read=read,
        value=partial(_value, request, table),
        uuid=_uuid(request, table),
    )


def _read(
    session: SparkSession, request: BackfillObject, address: SourceAddress, table: HeldTable, fetch: Fetch
) -> DataFrame:
    whole = fetch.condition == "true"
    at = [f"{quoted(table.split)} AS at"] if table.split is not None else []
    size = [] if whole else [f"{row_bytes(table.schema.columns)} AS bytes"]
    asked = [still_held(table.marker, fetch.rows), *([] if whole else [fetch.condition])]
    query = f"(SELECT {', '.join((*_values(table), *at, *size))} FROM {table.source}) AS source"
    reader = session.read.option("driver", _DRIVER)
    return reader.option("sessionInitStatement", f"SELECT {fails_unless_held(table.marker)}").jdbc(
        jdbc_url(address),
        query,
        predicates=[" AND ".join((*asked, one)) for one in table.ranges()],
        properties=_properties(request, address, table, fetch),
    )


def _values(table: HeldTable) -> list[str]:
    return [f"{as_read(column, table.dialect)} AS c{number}" for number, column in enumerate(table.schema.columns)]


def _properties(request: BackfillObject, address: SourceAddress, table: HeldTable, fetch: Fetch) -> dict[str, str]:
    """The driver's properties, password and secret among them."""
    variables = {**SESSION, "lock_wait_timeout": "1", **_pads(request, address, table)}
    password = {"password": address.password} if address.password is not None else {}
    return {
        "user": address.user,
        **password,
        **tls_properties(address, encrypted=table.encrypted, asks_for_key=table.dialect is MYSQL),
        "sessionVariables": ",".join(f"{name}={value}" for name, value in variables.items()),
        "connectionAttributes": "program_name:tidemark",
        "fetchsize": str(fetch.rows),
        "tcpKeepAlive": "true",
    }


def _pads(request: BackfillObject, address: SourceAddress, table: HeldTable) -> dict[str, str]:
    """Variables of a session that hashes columns."""
    secret = secret_of(address, table.schema, request.rules.hash_mark)
    if secret is None:
        return {}
    inner, outer = pads_of(secret)
    return {INNER: f"'{inner}'", OUTER: f"'{outer}'"}


def _value(request: BackfillObject, table: HeldTable, number: int, column: SourceColumn) -> Column:
    value = F.col(f"c{number}")
    if is_native(column):
        return value.cast(spark_type(column.type))
    return written_value(
        value,
        column,
        invalid_values=request.invalid_values,
        object_name=request.object.name.text,
        position=F.lit(position_text(table.position)),
    )


def _uuid(request: BackfillObject, table: HeldTable) -> Column:
    """From the position and the row's key. Rows without a key are distinguished by their order in the answer. Each text
    follows its length, so that no two keys make the same name.
    """
    columns = dict(enumerate(table.schema.columns))
    keys = [number for number, column in columns.items() if column.key]
    texts = [_measured(_key_text(number, columns[number])) for number in keys or columns]
    more = [] if keys else [F.monotonically_increasing_id().cast("string")]
    about = F.lit(f"{request.system_id}|{table.position.commit}")
    return uuid5(EVENT_NAMESPACE, F.concat_ws("|", about, _measured(F.lit(request.object.source_id)), *texts, *more))


def _key_text(number: int, column: SourceColumn) -> Column:
    value = F.col(f"c{number}")
    return F.hex(value) if is_native(column) and column.type.kind is TypeKind.BYTES else value.cast("string")


def _measured(text: Column) -> Column:
    return F.coalesce(F.concat(F.length(text).cast("string"), F.lit(":"), text), F.lit(""))


def _failure(text: str, name: str, waited: str | None) -> TidemarkError | None:
    if _NO_DRIVER.search(text):
        return SourceDriverNotInstalled(
            kind="MySQL or MariaDB",
            package="MariaDB's driver of JDBC on Spark's class path",
            command=f"spark.jars.packages={MARIADB_PACKAGE}",
        )
    if waited is not None:
        return BackfillGaveWay(object=name, problem=waited)
    found = _OF_DRIVER.search(text)
    if found is None:
        return None
    kind = BackfillGaveWay if _ENDED.search(found[1]) else BackfillInterrupted
    return kind(object=name, problem=found[1].strip())
