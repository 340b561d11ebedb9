"""READ_<stream> and read_json_<stream> as table functions of Spark SQL.

A function of SQL is text, and cannot be given a DataFrame. Temporary views have everything that does not depend on its
arguments. They are made of the same expressions as `read_change_stream`, and the text only queries them. Guards are a
branch of the UNION ALL, and in its WHERE. So they fire even if the log has no row or the rows are only counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.change_streams.driver.change_records import CHILDREN_FIRST, IN_TIME, PLACE, data_records
from tidemark.change_streams.driver.log_rows import LogRows
from tidemark.change_streams.driver.log_table import TOKEN_COLUMN
from tidemark.change_streams.driver.read import log_of
from tidemark.change_streams.driver.records import (
    CHANGE_RECORD,
    CHANGE_RECORD_DDL,
    CHILDREN,
    HEARTBEAT,
    JSON_OPTIONS,
    KINDS,
)
from tidemark.change_streams.model.change_streams import EPOCH, MICROSECOND, ChangeStream, Partition
from tidemark.change_streams.planning import reading
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["drop_read_functions", "register_read_functions"]

_ARGUMENTS = (
    "start_timestamp TIMESTAMP, end_timestamp TIMESTAMP DEFAULT NULL, partition_token STRING DEFAULT NULL, "
    "heartbeat_milliseconds BIGINT DEFAULT NULL, read_options ARRAY<STRING> DEFAULT NULL"
)
_GIVEN = {
    "start": "start_timestamp",
    "end": "end_timestamp",
    "token": "partition_token",
    "beat": "heartbeat_milliseconds",
    "options": "read_options",
}
_SLOT = "{0} + pmod(unix_micros(asked.start) - {0}, asked.beat * 1000)"  # the end of a time's slot
_KNOWN = """
WITH asked AS (SELECT {asked}, {of_all} AS of_all),
kept AS (SELECT greatest({now} - {retention}, {created}, max(until)) AS oldest FROM {expirations}),
captured AS (SELECT greatest({published}, max(until)) AS captured FROM {windows}),
known AS (SELECT asked.*, oldest, captured, mine.token AS known, started, ended, children,
    least(captured, ended, asked.end + INTERVAL 1 MICROSECOND) AS until,
    ended IS NOT NULL AND (asked.end IS NULL OR ended <= asked.end) AS complete
  FROM asked CROSS JOIN kept CROSS JOIN captured LEFT JOIN {partitions} AS mine ON mine.token = asked.token),
ends AS (SELECT *, timestamp_micros(unix_micros(until) - 1) AS last FROM known
  WHERE (known IS NOT NULL OR of_all) AND until > known.start),
taken AS (SELECT at FROM {times} WHERE {in_range}),
slots AS (SELECT DISTINCT {slot_of_window} AS slot,
    unix_micros(asked.start) AS begun,
    unix_micros(asked.last) - IF(asked.complete, 0, asked.beat * 1000) AS latest
  FROM ends AS asked JOIN {windows} AS closed ON closed.until > asked.start AND closed.until <= asked.until),
taken_slots AS (SELECT DISTINCT {slot_of_record} AS slot FROM asked CROSS JOIN taken),
beats AS (
  SELECT timestamp_micros(slot) AS at FROM slots LEFT ANTI JOIN taken_slots USING (slot)
  WHERE slot > begun AND slot <= latest
  UNION ALL
  SELECT last AS at FROM ends LEFT ANTI JOIN taken ON taken.at = last WHERE NOT complete),
born AS (
  SELECT ended AS at, '00000000' AS sequence, children, '' AS place FROM known WHERE complete
  UNION ALL
  SELECT one.ended, '00000000', one.children, one.token FROM ends AS asked JOIN {partitions} AS one
    ON asked.of_all AND one.ended > asked.start AND one.ended < asked.until
  UNION ALL
  SELECT start, sequence, children, sequence FROM (
    SELECT asked.start, lpad(CAST(row_number() OVER (ORDER BY open.token) - 1 AS STRING), 8, '0') AS sequence,
      array(struct(open.token, CAST(array() AS ARRAY<STRING>) AS parent_partition_tokens)) AS children
    FROM asked JOIN {partitions} AS open ON (asked.token IS NULL OR asked.of_all)
      AND started <= asked.start AND (ended IS NULL OR ended > asked.start)))
"""
_ANSWER = """
SELECT {row} FROM (
  SELECT at, kind, sequence, {row} FROM {records} WHERE {in_range}
  UNION ALL
  SELECT at, {in_time}, '', {beat} FROM beats
  UNION ALL
  SELECT at, {children_first}, place, {children} FROM born
  UNION ALL
  SELECT NULL, NULL, NULL, NULL FROM (SELECT max({problem}) AS problem FROM known)
  WHERE CASE WHEN problem IS NULL THEN FALSE ELSE raise_error(problem) IS NULL END
) ORDER BY {place}"""


def register_read_functions(
    spark: SparkSession,
    stream: ChangeStream,
    *,
    now: datetime,
    options: Mapping[str, str] | None = None,
    first: Sequence[Partition] = (),
) -> None:
    """Make READ_<stream> and read_json_<stream> in this session, temporary, with the arguments of 1.5 by name or place.

    Arguments are literals or session variables; `heartbeat_milliseconds` has a default only so that its absence is an
    error of ours. They see what the log has when they are called. `now`, retention and published_until stay as they
    are here, so a second registration knows more. Errors have the words of `read_change_stream` and come as Spark's
    USER_RAISED_EXCEPTION. Raises ChangeStreamNotFound, OutOfRange as `log_of`.
    """
    log = log_of(spark, stream, LogRows.moving, options, first)
    if first and log.partitions.isEmpty():  # the first capture makes the log before it appends its batch
        log = LogRows.before_capture(spark, first)
    for as_json in (False, True):
        views = _views(log, stream, as_json)
        for name, rows in views.items():
            rows.createOrReplaceTempView(name)
        name = f"read_json_{stream.name}" if as_json else f"READ_{stream.name}"
        kind = "STRING" if as_json else CHANGE_RECORD_DDL
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY FUNCTION {quoted(name)}({_ARGUMENTS}) RETURNS TABLE({CHANGE_RECORD} {kind}) "
            f"RETURN {_body(stream, now, quoted(name), [quoted(view) for view in views], as_json)}"
        )


def drop_read_functions(spark: SparkSession, stream: ChangeStream) -> None:
    """Take the functions of a dropped change stream from this session. A second run finds nothing to do."""
    for name in (f"READ_{stream.name}", f"read_json_{stream.name}"):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quoted(name)}")
    for view in spark.catalog.listTables():
        if view.isTemporary and view.name.startswith(_prefix(stream)):
            spark.catalog.dropTempView(view.name)


def _prefix(stream: ChangeStream) -> str:
    """Names of temporary views begin with it; they take no hyphens."""
    return f"tidemark_{stream.uid.replace('-', '_')}_"


def _views(log: LogRows, stream: ChangeStream, as_json: bool) -> dict[str, DataFrame]:
    """Records, times, partitions with their ends and children, and one row of what the log has from when until when."""
    prefix = _prefix(stream)
    return {
        f"{prefix}{'json' if as_json else 'records'}": data_records(log.all_data, as_json, TOKEN_COLUMN),
        f"{prefix}times": log.all_data.select(TOKEN_COLUMN, F.col("commit_timestamp").alias("at")),
        f"{prefix}partitions": log.families,
        f"{prefix}windows": log.windows,
        f"{prefix}expirations": log.expirations,
    }


def _body(stream: ChangeStream, now: datetime, function: str, views: Sequence[str], as_json: bool) -> str:
    names = dict(zip(("records", "times", "partitions", "windows", "expirations"), views, strict=True))
    listed = ", ".join(f"{function}.{argument} AS {name}" for name, argument in _GIVEN.items())
    of_all = f"coalesce(upper({function}.partition_token) = '{reading.ALL}', FALSE)"
    in_range = (
        f"({of_all} OR {TOKEN_COLUMN} = {function}.partition_token) AND at >= {function}.start_timestamp "
        f"AND ({function}.end_timestamp IS NULL OR at <= {function}.end_timestamp)"
    )
    child = "at AS start_timestamp, sequence AS record_sequence, children AS child_partitions"
    return (_KNOWN + _ANSWER).format(
        **names,
        asked=listed,
        in_range=in_range,
        of_all=of_all,
        now=_time(now),
        retention=f"INTERVAL {stream.options.retention // MICROSECOND} MICROSECOND",
        created=_time(stream.created_at),
        published=_time(stream.published_until),
        slot_of_window=_SLOT.format("(unix_micros(closed.until) - 1)"),
        slot_of_record=_SLOT.format("unix_micros(at)"),
        row=CHANGE_RECORD,
        in_time=IN_TIME,
        children_first=CHILDREN_FIRST,
        beat=_framed(HEARTBEAT, "at AS timestamp", as_json),
        children=_framed(CHILDREN, child, as_json),
        problem=_problem(now),
        place=", ".join(PLACE),
    )


def _problem(now: datetime) -> str:
    """Null, or what is wrong: the checks of `change_streams.planning.reading` in their order and words.

    It is raised above an aggregate, and the optimizer pushes nothing below that. An error inside a broadcast would
    reach Python without its class.
    """
    least, most = reading.HEARTBEATS
    latest = f"greatest({_time(now)}, captured) + INTERVAL {reading.FUTURE_ALLOWED // MICROSECOND} MICROSECOND"
    checks = (
        ("known.start IS NULL", "INVALID_ARGUMENT", reading.START_NULL),
        ("beat IS NULL", "INVALID_ARGUMENT", reading.HEARTBEAT_NULL),
        ("options IS NOT NULL", "UNIMPLEMENTED", reading.OPTIONS_NULL),
        ("known.start > known.end", "INVALID_ARGUMENT", reading.START_AFTER_END),
        (f"beat NOT BETWEEN {least} AND {most}", "OUT_OF_RANGE", reading.HEARTBEAT_RANGE),
        ("known.start < oldest", "OUT_OF_RANGE", f"{reading.TOO_EARLY} ', oldest, '"),
        (f"known.start > {latest}", "OUT_OF_RANGE", f"{reading.TOO_LATE} ', {latest}, '"),
        (
            "(known.token IS NULL OR of_all) AND known.start > captured",
            "OUT_OF_RANGE",
            f"{reading.NOT_CAPTURED} ', captured, '",
        ),
        (
            "known.token IS NOT NULL AND NOT of_all AND known IS NULL",
            "INVALID_ARGUMENT",
            f"partition_token is invalid: {reading.UNKNOWN_TOKEN}",
        ),
        ("ended < oldest", "OUT_OF_RANGE", f"This partition is no longer valid: {reading.EXPIRED} ', oldest, '"),
        (
            "known.start < started OR known.start > ended",
            "OUT_OF_RANGE",
            f"{reading.OUTSIDE} [', started, ', ', coalesce(CAST(ended AS STRING), 'open'), ']",
        ),
    )
    cases = " ".join(f"WHEN {condition} THEN concat('{kind}: {problem}')" for condition, kind, problem in checks)
    return f"CASE {cases} END"


def _framed(kind: str, fields: str, as_json: bool) -> str:
    """`records.framed` of a struct of `fields` as text."""
    if as_json:
        listed = ", ".join(_text(part) for pair in JSON_OPTIONS.items() for part in pair)
        return f"""concat('{{"{kind}":', to_json(struct({fields}), map({listed})), '}}')"""
    arrays = ", ".join(f"array(struct({fields}))" if one == kind else "array()" for one in KINDS)
    return f"CAST(array(struct({arrays})) AS {CHANGE_RECORD_DDL})"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _time(time: datetime) -> str:
    return f"timestamp_micros({(time - EPOCH) // MICROSECOND})"
