"""A watched table's rows as of the version behind which a group's records begin, into a target, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.change_streams.driver.modifications import shape_of
from tidemark.change_streams.model.backfill import BackfillRequest
from tidemark.change_streams.model.change_streams import WatchedTable
from tidemark.delivery.driver.exactly_once import Delivering, find_delivery, open_target, target_schema, write_statement
from tidemark.delivery.driver.fit import fit_columns
from tidemark.delivery.driver.past_rows import rows_as_of
from tidemark.delivery.planning.delivery import Finding
from tidemark.errors import InvalidArgument
from tidemark.jobs.schemas import struct_type
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import Evidence, PlannedWrite, SchemaEvolution, Statement, WriteAs
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["backfill_table"]


def backfill_table(
    session: SparkSession,
    store_id: str,
    request: BackfillRequest,
    stop_if_due: Callable[[], None],
    options: Mapping[str, str] | None = None,
) -> Evidence:
    """One commit of the target: it then has exactly the rows of the version. A second run finds the commit and writes
    nothing, even if the group has delivered records since.

    Raises InvalidArgument for a target that has rows which may not be deleted, or records of the group without their
    backfill. Raises TargetDoesNotFit, and SplitUnreadable if files of the version are gone.
    """
    application = f"tidemark/{store_id}/{request.group_uid}"
    target = DeltaLog.open(request.target.path, options)
    statement = _statement(request, f"{application}/backfill/{request.source.table_id}", target)
    delivering = Delivering(store_id, None, (), options, stop_if_due)
    if find_delivery(delivering, statement).finding is not Finding.FREE:
        return write_statement(session, delivering, statement, _never)
    _require_unread(target, application, request)
    source = DeltaLog.open(request.source.path, options)
    rows = rows_as_of(session, source, max(request.version, 0), table=request.source.name)
    if request.version < 0:  # it came after the change stream: its records begin with its first row
        rows = rows.limit(0)
    rows = rows.select(*(F.col(quoted(name)) for name in _shown(request, source)))
    schema = target_schema(open_target(statement, options))
    fitted = fit_columns(rows.schema, schema, target_name=request.target.name, evolution=SchemaEvolution.FAIL)
    shaped = rows.select(*(column.expression for column in fitted))
    mode = "append" if session.read.format("delta").load(request.target.path).isEmpty() else "overwrite"
    if mode == "overwrite" and not request.overwrite:
        problem = f"{request.target.name} has rows, which would be lost; set overwrite=True to replace them"
        raise InvalidArgument(argument="overwrite", value=False, problem=problem)
    writer = shaped.write.format("delta").mode(mode)
    return write_statement(session, delivering, statement, lambda: writer.save(request.target.path))


def _shown(request: BackfillRequest, source: DeltaLog) -> list[str]:
    """The columns that the records show; Spark's schema of a table does not say which are generated."""
    schema = struct_type(source.state(max(request.version, 0)).metadata.schema_json)
    return [
        field.name for field in shape_of(schema, WatchedTable(request.source, request.keys, request.columns, 0)).columns
    ]


def _statement(request: BackfillRequest, app_id: str, target: DeltaLog) -> Statement:
    return Statement(
        number=1,
        write=PlannedWrite(WriteAs.APPEND, request.target.path, source=f"{request.source.table_id}@{request.version}"),
        target=request.target,
        base_version=target.earliest() - 1 if target.earliest() > 0 else 0,
        app_id=app_id,
        txn_version=1,
    )


def _require_unread(target: DeltaLog, application: str, request: BackfillRequest) -> None:
    for commit in target.commits(max(target.earliest() - 1, 0), target.head()):
        if any(one.startswith(f"{application}/") for one in commit.transactions):
            problem = (
                f"{request.target.name} has records of this group, but not the rows that they change; reset the group "
                "and begin with the backfill"
            )
            raise InvalidArgument(argument="target", value=request.target.name, problem=problem)


def _never() -> None:
    raise AssertionError("the write was found in the target's log and is gone now")
