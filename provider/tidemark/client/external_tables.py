"""External tables in a notebook: data files in a directory, for insert-only streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument
from tidemark.model.external_tables import ExternalTableRequest, Refreshed
from tidemark.streams.driver.external_tables.refresh import refresh_external_table
from tidemark.streams.planning.external_tables import file_format_of

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = ["ExternalTables"]


class ExternalTables:
    """The attribute `lake.external_tables`. Names are found in any case; a directory may be its own name."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context

    def create(
        self,
        name: str,
        *,
        file_format: str,
        location: str | None = None,
        schema: str | None = None,
        options: Mapping[str, str] | None = None,
        pattern: str | None = None,
    ) -> Refreshed:
        """An external table on the files below the directory `location` (default: `name`), and its first refresh.

        `file_format`: parquet, json, csv or avro. `schema`: its columns in Spark's DDL, else those that Spark finds in
        the files. `options`: of Spark's reader; a record that cannot be read fails, unless they say otherwise.
        `pattern`: only files whose path in the directory matches, as `2026/*.json`. A second run refreshes. Raises
        InvalidArgument, ExternalTableExists if it was made in other words, TableNotFound, FilesHaveNoSchema,
        FileFormatNotInstalled.
        """
        request = ExternalTableRequest(
            name=name,
            location=location or name,
            file_format=file_format_of(file_format),
            schema=schema,
            options=dict(options or {}),
            pattern=pattern,
        )
        return self._refresh(request)

    def refresh(self, name: str) -> Refreshed:
        """List the files again. Streams see new files after it alone (R66). Raises ExternalTableNotFound."""
        return self._refresh(ExternalTableRequest(name))

    def _refresh(self, request: ExternalTableRequest) -> Refreshed:
        context = self._context
        if context.lake_root is None:
            problem = "an external table is kept under the lake root: connect with one"
            raise InvalidArgument(argument="lake_root", value=None, problem=problem)
        return refresh_external_table(context.spark, context.paths.workspace, request, context.options)
