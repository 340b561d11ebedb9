"""Answers to statements about stages, file formats and pipes, with the columns of the source system."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.model.pipes import NamedFormat, Pipe, Stage
from tidemark.pipes.planning.formats import defaults_of, described
from tidemark.pipes.planning.names import name_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.lake.storage import StoredFile

__all__ = ["described_format", "described_stage", "listed_files", "shown_formats", "shown_pipes", "shown_stages"]

_NAMES = "created_on TIMESTAMP, name STRING, database_name STRING, schema_name STRING"
_STAGES = (
    f"{_NAMES}, url STRING, has_credentials STRING, has_encryption_key STRING, owner STRING, comment STRING,"
    " region STRING, type STRING, cloud STRING, notification_channel STRING, storage_integration STRING,"
    " endpoint STRING, owner_role_type STRING, directory_enabled STRING"
)
_FORMATS = f"{_NAMES}, type STRING, owner STRING, comment STRING, format_options STRING, owner_role_type STRING"
_PIPES = (
    f"{_NAMES}, definition STRING, owner STRING, notification_channel STRING, comment STRING, integration STRING,"
    " pattern STRING, error_integration STRING, owner_role_type STRING, invalid_reason STRING, kind STRING"
)
_PROPERTIES = "property STRING, property_type STRING, property_value STRING, property_default STRING"
_FILES = "name STRING, size BIGINT, md5 STRING, last_modified TIMESTAMP"
_STAGE_KIND = "EXTERNAL"
_PIPE_KIND = "STAGE"


def shown_stages(spark: SparkSession, stages: Iterable[Stage]) -> DataFrame:
    """SHOW STAGES. Credentials are those of the client, not of the stage."""

    def row(one: Stage) -> tuple[Any, ...]:
        cloud = one.location.partition(":")[0].upper()
        first = (one.location, "N", "N", None, one.comment, None, _STAGE_KIND, None if cloud == "FILE" else cloud)
        return (one.created_at, *_in_parts(one.name), *first, None, None, None, None, "N")

    return spark.createDataFrame([row(one) for one in stages], _STAGES)


def shown_formats(spark: SparkSession, formats: Iterable[NamedFormat]) -> DataFrame:
    """SHOW FILE FORMATS. `format_options`: all options as JSON."""

    def row(one: NamedFormat) -> tuple[Any, ...]:
        options = {"TYPE": str(one.format.type), **defaults_of(one.format.type), **one.format.options}
        shown = (str(one.format.type), None, one.comment, json.dumps(options), None)
        return (one.created_at, *_in_parts(one.name), *shown)

    return spark.createDataFrame([row(one) for one in formats], _FORMATS)


def shown_pipes(spark: SparkSession, pipes: Iterable[tuple[Pipe, str | None]]) -> DataFrame:
    """SHOW PIPES and DESCRIBE PIPE, of pipes with the pattern of their statement. `invalid_reason`: of the last run."""

    def row(one: Pipe, pattern: str | None) -> tuple[Any, ...]:
        reason = None if one.stalled is None else one.problem
        shown = (one.copy_statement, None, one.notification_channel, one.comment, None, pattern, None, None)
        return (one.created_at, *_in_parts(one.name), *shown, reason, _PIPE_KIND)

    return spark.createDataFrame([row(*one) for one in pipes], _PIPES)


def described_format(spark: SparkSession, format: FileFormat) -> DataFrame:
    """DESCRIBE FILE FORMAT."""
    return spark.createDataFrame(list(described(format)), _PROPERTIES)


def described_stage(spark: SparkSession, stage: Stage) -> DataFrame:
    """DESCRIBE STAGE: its format and its location."""
    if stage.format_name is not None:
        rows: list[Sequence[str]] = [("FORMAT_NAME", "String", stage.format_name, "")]
    else:
        rows = list(described(stage.format or FileFormat(FileType.CSV)))
    parts: list[Sequence[str]] = [("STAGE_FILE_FORMAT", *row) for row in rows]
    parts.append(("STAGE_LOCATION", "URL", "String", json.dumps([stage.location]), ""))
    return spark.createDataFrame(parts, f"parent_property STRING, {_PROPERTIES}")


def listed_files(spark: SparkSession, location: str, files: Iterable[StoredFile]) -> DataFrame:
    """LIST, by name. `md5`: the mark of the content that the storage keeps; NULL if it keeps none."""
    rows = [(f"{location}/{one.name}", one.size, one.etag or None, one.modified_at) for one in files]
    return spark.createDataFrame(sorted(rows), _FILES)


def _in_parts(name: str) -> tuple[str, str | None, str | None]:
    """Name, database and schema."""
    database, schema, last = (None, None, *name_parts(name))[-3:]
    return last or "", database, schema
