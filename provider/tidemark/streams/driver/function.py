"""A user's function as the writer: it gets a `tx` and writes the targets that were declared, each once."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.delivery.driver.append import prepare_append
from tidemark.delivery.driver.exactly_once import (
    Delivering,
    open_target,
    partition_columns,
    target_schema,
    write_statement,
)
from tidemark.delivery.driver.merge import prepare_merge
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.errors import StatementRefused
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import Evidence, Statement
from tidemark.sql.statements import StatementKind, parse_statement
from tidemark.streams.driver.sql import prepare_sql, query_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.streams.driver.pinned_streams import PinnedStreams

__all__ = ["FunctionTransaction", "load_function", "run_function"]


class FunctionTransaction:
    """The argument of a writer function. All DataFrames must come from `tx.spark` or `tx.stream`."""

    def __init__(self, streams: PinnedStreams, delivering: Delivering, statements: Sequence[Statement]) -> None:
        self.spark: SparkSession = streams.session
        self.evidence: dict[int, Evidence] = {}
        self.failures: dict[int, Exception] = {}
        self._streams = streams
        self._delivering = delivering
        self._statements = tuple(statements)
        self._tables = {name: path for s in statements for name, path in s.write.tables.items()}

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the transaction's streams, so that one function can serve several."""
        return self._streams.names

    @property
    def targets(self) -> tuple[str, ...]:
        """The declared targets, in their order."""
        return tuple(statement.write.target for statement in self._statements)

    def stream(self, name: str) -> DataFrame:
        """The stream's rows in this transaction's window, the same however often (R20). Raises StreamNotFound."""
        return self._streams.frame(name)

    def sql(self, text: str) -> DataFrame | None:
        """A SELECT returns its DataFrame; a write (see `parse_write`) goes to its declared target, once."""
        parsed = parse_statement(text)
        if parsed.kind is StatementKind.SELECT:
            return self.spark.sql(query_text(parsed, self._streams, self._tables))
        if parsed.target is None:
            raise StatementRefused(problem="it has no target", sql=text)
        statement = self._declared(parsed.target.name)
        self._write(statement, lambda: prepare_sql(self.spark, statement, text, self._streams))
        return None

    def append(self, rows: DataFrame, target: str) -> None:
        """Append `rows` to a declared target, once. Raises TargetDoesNotFit, StatementRefused."""
        statement = self._declared(target)
        self._same_session(rows)
        self._write(statement, lambda: prepare_append(rows, statement, target_schema(self._log(statement))))

    def merge(self, rows: DataFrame, target: str, keys: Sequence[str]) -> None:
        """Merge `rows` into a declared target by `keys`, once; DELETE rows are those that METADATA$ACTION calls so."""
        statement = self._declared(target)
        self._same_session(rows)

        def prepare() -> PreparedWrite:
            log = self._log(statement)
            return prepare_merge(rows, statement, target_schema(log), keys, partitioned=partition_columns(log))

        self._write(statement, prepare)

    def _log(self, statement: Statement) -> DeltaLog:
        return open_target(statement, self._delivering.options)

    def _declared(self, target: str) -> Statement:
        wanted = target.strip()
        names = {n: s for s in self._statements for n in (s.write.target, s.target.name, s.target.path)}
        statement = names.get(wanted)
        if statement is None:
            declared = ", ".join(s.write.target for s in self._statements)
            raise StatementRefused(problem=f"{target} is not a declared target ({declared})", sql=self._called)
        if statement.number in self.evidence:
            raise StatementRefused(problem=f"{target} is written a second time in one transaction", sql=self._called)
        return statement

    @property
    def _called(self) -> str:
        return str(self._statements[0].write.function)

    def _same_session(self, rows: DataFrame) -> None:
        if rows.sparkSession is not self.spark:
            raise StatementRefused(
                problem="the DataFrame comes from another Spark session, in which the write could not be marked; "
                "make it from tx.spark or tx.stream(…)",
                sql=self._called,
            )

    def _write(self, statement: Statement, prepare: Callable[[], PreparedWrite]) -> None:
        def checked_write() -> None:
            prepared = prepare()
            try:
                prepared.run()
            finally:
                prepared.close()

        try:
            self.evidence[statement.number] = write_statement(self.spark, self._delivering, statement, checked_write)
        except Exception as error:
            self.failures[statement.number] = error
            raise


def load_function(name: str) -> Callable[..., Any]:
    """The function that `module:function` names. Raises StatementRefused where there is none."""
    module_name, _, function_name = name.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise StatementRefused(problem=f"the function cannot be imported: {error}", sql=name) from error
    if not callable(found):
        raise StatementRefused(problem="it is not a function", sql=name)
    _send_by_value(Path(getattr(sys.modules[module_name], "__file__", None) or "/").parent)
    loaded: Callable[..., Any] = found
    return loaded


def _send_by_value(directory: Path) -> None:
    """UDFs of the modules in `directory` travel with their code: the Python of a shared Spark does not know them.
    Idempotent.
    """
    from pyspark.cloudpickle import register_pickle_by_value

    if directory.is_relative_to(sys.prefix):
        return
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and module.__name__ != "__main__" and Path(file).is_relative_to(directory):
            register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def run_function(
    function: Callable[[FunctionTransaction], object],
    streams: PinnedStreams,
    delivering: Delivering,
    statements: Sequence[Statement],
) -> tuple[Evidence, ...]:
    """Call `function` once. A declared target that it leaves out gets an empty commit with the mark, so that the plan
    is whole. A target whose write failed gets none, even if the function continued: that would pass for delivered. A
    second run calls it again, but writes only what is still missing.
    """
    tx = FunctionTransaction(streams, delivering, statements)
    function(tx)
    for statement in statements:
        if statement.number not in tx.evidence:
            if statement.number in tx.failures:
                raise tx.failures[statement.number]
            tx.evidence[statement.number] = write_statement(tx.spark, delivering, statement, lambda: None)
    return tuple(tx.evidence[statement.number] for statement in statements)
