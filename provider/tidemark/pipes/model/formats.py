"""File formats, by the names of the source system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["FileFormat", "FileType"]


class FileType(StrEnum):
    """The types of files that can be loaded."""

    CSV = "CSV"
    JSON = "JSON"
    PARQUET = "PARQUET"
    AVRO = "AVRO"
    ORC = "ORC"
    XML = "XML"

    @property
    def is_text(self) -> bool:
        """Whether a row may be unreadable beside readable ones. Others are read by their footers."""
        return self in (FileType.CSV, FileType.JSON, FileType.XML)


@dataclass(frozen=True)
class FileFormat:
    """A type, and the options that differ from its defaults: upper-case name → bool, int, text, or list of texts."""

    type: FileType = FileType.CSV
    options: Mapping[str, Any] = field(default_factory=dict)
