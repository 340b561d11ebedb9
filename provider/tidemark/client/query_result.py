"""The answer of a query, which needs Spark only if nothing has stored it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tidemark.results.worker.files import OpenAnswer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["CACHE", "LOG", "SEARCH", "SPARK", "ArrowResult", "FrameResult", "QueryResult", "RowResult", "StoredResult"]

CACHE, LOG, SEARCH, SPARK = "cache", "log", "search", "spark"


class QueryResult:
    """The rows of a query. `origin`: `cache`, `log`, `search` or `spark`. `why`: the reason why no earlier answer was
    used, empty for a hit. `key`: that of the answer, None if it cannot be reused.
    """

    def __init__(self, origin: str, key: str | None, why: str, start: Callable[[], SparkSession]) -> None:
        self.origin = origin
        self.key = key
        self.why = why
        self._start = start

    @property
    def cached(self) -> bool:
        """Whether the rows are those of an earlier run."""
        return self.origin == CACHE

    @property
    def columns(self) -> tuple[str, ...]:
        """The titles of the columns; two may be equal."""
        return tuple(self._struct().names)

    def to_arrow(self) -> pa.Table:
        """All rows in this process. Types are those of `DataFrame.toArrow`."""
        raise NotImplementedError

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in their order, in parts."""
        yield from self.to_arrow().to_batches()

    def to_pandas(self) -> Any:
        """All rows as Arrow converts them to pandas."""
        return self.to_arrow().to_pandas()

    def collect(self) -> list[Row]:
        """All rows, as `DataFrame.collect` has them. No JVM is started for an earlier answer."""
        from pyspark.sql.conversion import ArrowTableToRowsConversion

        rows: list[Row] = ArrowTableToRowsConversion.convert(self.to_arrow(), self._struct())
        return rows

    def dataframe(self) -> DataFrame:
        """The rows as a DataFrame of the session, which starts if it has to."""
        table, struct = self.to_arrow(), self._struct()
        numbered = [f"c{number}" for number in range(len(struct.fields))]
        schema = _renamed(struct, numbered)
        return self._start().createDataFrame(table.rename_columns(numbered), schema=schema).toDF(*struct.names)

    def _struct(self) -> StructType:
        raise NotImplementedError


class StoredResult(QueryResult):
    """An answer in files, which are open."""

    def __init__(self, opened: OpenAnswer, *of_all: Any) -> None:
        super().__init__(*of_all)
        self._opened = opened

    def to_arrow(self) -> pa.Table:
        """All rows, from the files."""
        return self._opened.table()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in parts, from the files."""
        return self._opened.batches()

    def _struct(self) -> StructType:
        from tidemark.jobs.schemas import struct_type

        return struct_type(self._opened.written.schema_json)


class ArrowResult(QueryResult):
    """Rows in this process. `schema_json`: of the table whose columns they have, or of more columns."""

    def __init__(self, table: pa.Table, schema_json: str, *of_all: Any) -> None:
        super().__init__(*of_all)
        self._table, self._schema_json = table, schema_json

    def to_arrow(self) -> pa.Table:
        """The rows."""
        return self._table

    def _struct(self) -> StructType:
        from pyspark.sql.types import StructType

        from tidemark.jobs.schemas import struct_type

        fields = {field.name: field for field in struct_type(self._schema_json).fields}
        return StructType([fields[name] for name in self._table.column_names])


class RowResult(QueryResult):
    """One row from the log."""

    def __init__(self, titles: tuple[str, ...], types: tuple[str, ...], values: tuple[Any, ...], *of_all: Any) -> None:
        super().__init__(*of_all)
        self._titles, self._types, self._values = titles, types, values

    def to_arrow(self) -> pa.Table:
        """The row."""
        import pyarrow as pa

        from tidemark.results.worker.log_rows import arrow_type

        columns = [pa.array([value], arrow_type(kind)) for kind, value in zip(self._types, self._values, strict=True)]
        return pa.Table.from_arrays(columns, names=list(self._titles))

    def _struct(self) -> StructType:
        from tidemark.jobs.schemas import struct_type

        fields = [
            {"name": title, "type": kind, "nullable": title != "count(1)", "metadata": {}}
            for title, kind in zip(self._titles, self._types, strict=True)
        ]
        return struct_type(json.dumps({"type": "struct", "fields": fields}))


class FrameResult(QueryResult):
    """A query that Spark runs each time that its rows are asked for."""

    def __init__(self, frame: DataFrame, *of_all: Any) -> None:
        super().__init__(*of_all)
        self._frame = frame

    def to_arrow(self) -> pa.Table:
        """All rows, from Spark."""
        return self._frame.toArrow()

    def collect(self) -> list[Row]:
        """All rows, from Spark."""
        return self._frame.collect()

    def dataframe(self) -> DataFrame:
        """The query itself."""
        return self._frame

    def _struct(self) -> StructType:
        return self._frame.schema


def _renamed(struct: StructType, names: list[str]) -> StructType:
    from pyspark.sql.types import StructType

    named = StructType()
    for name, field in zip(names, struct.fields, strict=True):
        named.add(name, field.dataType, field.nullable, field.metadata)
    return named
