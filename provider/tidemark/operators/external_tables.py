"""External tables: data files in a directory, for insert-only streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.model.external_tables import ExternalTableRequest, FileFormat
from tidemark.operators._base import is_left_out, key_of, unless_left_out
from tidemark.operators._constants import check_constants, check_options, is_constant
from tidemark.operators._spark import SparkOperator
from tidemark.streams.planning.external_tables import file_format_of

if TYPE_CHECKING:
    from airflow.sdk import Context


__all__ = ["RefreshExternalTableOperator"]


class RefreshExternalTableOperator(SparkOperator):
    """Notes which files a directory has now, so that insert-only streams see what came since the last time (R66).

    The first run creates the external table with its first files. CreateStreamOperator with mode `insert_only` creates
    a stream on it. Spark writes the list, so this starts a job. A second run commits nothing where nothing has changed.
    Raises ExternalTableExists if the table was created with other arguments, TableNotFound if the directory does not
    exist, FilesHaveNoSchema, FileFormatNotInstalled, InvalidArgument.

    :param external_table: its name; streams are made on this name. (templated)
    :param location: the directory; None for a table that exists. (templated)
    :param file_format: `parquet`, `json`, `csv` or `avro`; needed with a location. (templated)
    :param schema: its columns in Spark's DDL; None: those that Spark finds in the first files. (templated)
    :param options: of Spark's reader, as `{"header": "true"}`. (templated)
    :param pattern: only files whose path in the directory matches, as `2026/*.json`; None: all but hidden ones.
        (templated)
    """

    template_fields: Sequence[str] = (
        "external_table", "location", "file_format", "schema", "options", "pattern", "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        external_table: str,
        location: str | None = None,
        file_format: str | None = None,
        schema: str | None = None,
        options: Mapping[str, str] | None = None,
        pattern: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.external_table = external_table
        self.location = location
        self.file_format = file_format
        self.schema = schema
        self.options = options
        self.pattern = pattern
        check_constants(self, location=_location_of, file_format=_format_of)
        check_options(self, _options_of)
        if is_constant([location, file_format]):
            _require_format(location, file_format)

    def execute(self, context: Context) -> dict[str, Any]:
        """{table, version, added, overwritten, removed}: the version of the list, and how many files are new to it."""
        from tidemark.model.codec import to_plain
        from tidemark.operators._jobs import refresh_external_table

        request = self._request()
        done = refresh_external_table(self.runtime(), request, key=key_of(context))
        self.log.info(
            "External table %s: %s files added, %s overwritten, %s removed; its list is at version %s.",
            *(done.table, done.added, done.overwritten, done.removed, done.version),
        )
        found: dict[str, Any] = to_plain(done)
        return found

    def _request(self) -> ExternalTableRequest:
        _require_format(self.location, self.file_format)
        return ExternalTableRequest(
            name=self.external_table,
            location=_location_of("location", self.location),
            file_format=_format_of("file_format", self.file_format),
            schema=unless_left_out(self.schema),
            options=_options_of("options", self.options),
            pattern=unless_left_out(self.pattern),
        )


def _require_format(location: str | None, file_format: str | None) -> None:
    if not is_left_out(location) and is_left_out(file_format):
        raise InvalidArgument(argument="file_format", value=None, problem="a location needs it")


def _location_of(argument: str, value: str | None) -> str | None:
    """Raises InvalidArgument for a place with a password in it."""
    from tidemark.hooks._secrets import require_no_password

    if value is None or is_left_out(value):
        return None
    if not isinstance(value, str):
        raise InvalidArgument(argument=argument, value=value, problem="give the place of a directory")
    require_no_password(argument, value)
    return value


def _format_of(argument: str, value: str | None) -> FileFormat | None:
    if value is None or is_left_out(value):
        return None
    if not isinstance(value, str):
        raise InvalidArgument(argument=argument, value=value, problem="give the name of a format")
    return file_format_of(value.strip())


def _options_of(argument: str, value: Mapping[str, Any] | None) -> dict[str, str]:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidArgument(argument=argument, value=value, problem="give a mapping from options to values")
    return {name: str(one) for name, one in (value or {}).items()}
