"""Rows of a batch as each kind of source stages them, and as columns of the event log.

A staged row has the number of its object's facts and the columns of its kind. Its sequence and the parts of an `Event`
follow.
PostgreSQL's rows have positions as numbers: Spark makes the texts, at less cost than Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from tidemark.model.source_address import SourceKind
from tidemark.replication.driver.uuids import uuid5
from tidemark.replication.planning.events import EVENT_NAMESPACE, GOES

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["EventsOf", "LogForm", "form_of_kind"]


@dataclass(frozen=True)
class EventsOf:
    """The facts that all events of a batch have in common."""

    stream: str
    read_method: str
    system_id: str
    batch: int
    read_at: datetime


@dataclass(frozen=True)
class LogForm:
    """`row`: the columns that a kind stages for a change; `at`, the microseconds of its commit, is one. `repeated`:
    those with few values. `metadata`: fields of `source_metadata` beside the common ones. `filled`: columns of the
    event log by name.
    """

    row: Mapping[str, pa.DataType]
    repeated: tuple[str, ...]
    metadata: Mapping[str, str]
    filled: Callable[[EventsOf], dict[str, Column]]

    @property
    def metadata_ddl(self) -> str:
        """The type of `source_metadata`."""
        own = "".join(f", {name}: {kind}" for name, kind in self.metadata.items())
        return (
            "struct<schema: string, table: string, is_deleted: boolean, change_type: string, tx_id: string"
            f"{own}, primary_keys: array<string>>"
        )


def form_of_kind(kind: SourceKind) -> LogForm:
    """The form of that kind's rows."""
    return _FORMS[kind]


def _postgresql(common: EventsOf) -> dict[str, Column]:
    position, lsn = _hex("commit"), _lsn_text(F.col("lsn"))
    name = F.concat_ws("|", F.lit(common.system_id), position, _hex("lsn"), F.col("nth").cast("string"), F.col("half"))
    milliseconds = F.floor(F.col("at") / 1000).cast("string")
    return {
        "uuid": uuid5(EVENT_NAMESPACE, name),
        "sort_keys": F.array(milliseconds, lsn, F.col("sequence").cast("string")),
        "source_metadata": _metadata(F.col("xid").cast("string"), {"lsn": lsn}),
        "position": position,
    }


def _in_files(common: EventsOf) -> dict[str, Column]:
    """Of binary log files. A GTID names a transaction on each server that has it; without one a place does."""
    milliseconds = F.floor(F.col("at") / 1000).cast("string")
    place = F.concat_ws("|", F.lit(common.system_id), F.col("log_file"), F.col("log_position").cast("string"))
    transaction = F.concat_ws("|", F.col("gtid"), F.col("nth").cast("string"))
    named = F.when(F.col("gtid").isNull(), place).otherwise(transaction)
    log_position = F.col("log_position")
    own = {
        "log_file": F.col("log_file"),
        "log_position": log_position,
        "gtid": F.col("gtid"),
        "server_id": F.col("server_id"),
        "database": F.col("schema"),
    }
    return {
        "uuid": uuid5(EVENT_NAMESPACE, F.concat_ws("|", named, F.col("row").cast("string"), F.col("half"))),
        "sort_keys": F.array(
            milliseconds, F.col("log_file"), log_position.cast("string"), F.col("sequence").cast("string")
        ),
        "source_metadata": _metadata(F.coalesce(F.col("gtid"), F.col("commit")), own),
        "position": F.col("commit"),
    }


def _debezium(common: EventsOf) -> dict[str, Column]:
    """Places in the input identify events: a record that Debezium has written twice is two."""
    position, sequence = F.col("commit"), F.col("sequence").cast("string")
    name = F.concat_ws("|", F.lit(common.system_id), F.col("origin"), F.col("half"))
    milliseconds = F.coalesce(F.floor(F.col("at") / 1000).cast("string"), F.lit(""))
    return {
        "uuid": uuid5(EVENT_NAMESPACE, name),
        "read_method": F.coalesce(F.col("read_method"), F.lit(common.read_method)),
        "sort_keys": F.concat(
            F.array(milliseconds), F.coalesce(F.col("place"), F.array()), F.array(position, sequence)
        ),
        "source_metadata": _metadata(F.col("tx_id"), {name: F.col(name) for name in _OF_ENVELOPES}),
        "position": position,
    }


def _event_files(common: EventsOf) -> dict[str, Column]:
    """Events keep the identity that their files say. The file's own sort keys are first. Then comes the place in the
    log of the source, as a text that sorts, then the place in this log.
    """
    position, sequence = F.col("commit"), F.col("sequence").cast("string")
    name = F.concat_ws("|", F.lit(common.system_id), F.col("origin"), F.col("half"))
    places = F.array(F.col("order"), F.col("step").cast("string"), position, sequence)
    return {
        "uuid": F.coalesce(F.col("uuid"), uuid5(EVENT_NAMESPACE, name)),
        "sort_keys": F.concat(F.coalesce(F.col("sort_keys"), F.array()), places),
        "source_metadata": _metadata(F.col("tx_id"), {name: F.col(name) for name in _OF_ENVELOPES}),
        "read_method": F.coalesce(F.col("read_method"), F.lit(common.read_method)),
        "position": position,
    }


def _metadata(tx_id: Column, own: Mapping[str, Column]) -> Column:
    return F.struct(
        F.col("schema"),
        F.col("table"),
        F.col("change").isin(*GOES).alias("is_deleted"),
        F.col("change").alias("change_type"),
        tx_id.alias("tx_id"),
        *(column.alias(name) for name, column in own.items()),
        F.col("primary_keys"),
    )


def _hex(column: str) -> Column:
    """As a LogPosition has it."""
    return F.lpad(F.hex(F.col(column)), 16, "0")


def _lsn_text(lsn: Column) -> Column:
    """As PostgreSQL writes it."""
    return F.concat(F.hex(F.shiftright(lsn, 32)), F.lit("/"), F.hex(lsn.bitwiseAND(F.lit(0xFFFFFFFF))))


_FILES = LogForm(
    row={
        "commit": pa.string(),
        "gtid": pa.string(),
        "at": pa.int64(),
        "server_id": pa.int64(),
        "log_file": pa.string(),
        "log_position": pa.int64(),
        "nth": pa.int64(),
        "row": pa.int64(),
    },
    repeated=("commit", "gtid", "at", "server_id", "log_file", "log_position", "nth"),
    metadata={
        "log_file": "string",
        "log_position": "bigint",
        "gtid": "string",
        "server_id": "bigint",
        "database": "string",
    },
    filled=_in_files,
)
_OF_ENVELOPES = ("connector", "database", "lsn", "log_file", "log_position", "scn", "rs_id", "ssn", "row_id")
_FORMS: Mapping[SourceKind, LogForm] = {
    SourceKind.POSTGRESQL: LogForm(
        row={"commit": pa.int64(), "xid": pa.int64(), "at": pa.int64(), "lsn": pa.int64(), "nth": pa.int64()},
        repeated=("xid", "at", "commit"),
        metadata={"lsn": "string"},
        filled=_postgresql,
    ),
    SourceKind.MYSQL: _FILES,
    SourceKind.MARIADB: _FILES,
    SourceKind.DEBEZIUM: LogForm(
        row={
            "commit": pa.string(),
            "origin": pa.string(),
            "at": pa.int64(),
            "tx_id": pa.string(),
            "read_method": pa.string(),
            "place": pa.list_(pa.string()),
            **dict.fromkeys(_OF_ENVELOPES, pa.string()),
        },
        repeated=("at", "tx_id", "read_method", "connector", "database", "log_file"),
        metadata=dict.fromkeys(_OF_ENVELOPES, "string"),
        filled=_debezium,
    ),
    SourceKind.EVENT_FILES: LogForm(
        row={
            "commit": pa.string(),
            "origin": pa.string(),
            "at": pa.int64(),
            "uuid": pa.string(),
            "tx_id": pa.string(),
            "read_method": pa.string(),
            "sort_keys": pa.list_(pa.string()),
            "order": pa.string(),
            "step": pa.int64(),
            **dict.fromkeys(_OF_ENVELOPES, pa.string()),
        },
        repeated=("at", "tx_id", "read_method", "connector", "database", "log_file"),
        metadata=dict.fromkeys(_OF_ENVELOPES, "string"),
        filled=_event_files,
    ),
}
