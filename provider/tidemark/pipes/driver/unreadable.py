"""Files that Spark cannot read, by its errors."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from tidemark.errors import DataFileUnreadable
from tidemark.jobs.failures import named_failure

__all__ = ["GONE", "broken_file", "spark_name"]

GONE = "it does not exist any more"
_NOT_FOUND = "[PATH_NOT_FOUND] Path does not exist: "


def spark_name(location: str, file: str) -> str:
    """A file's path as Spark's readers show it, decoded."""
    whole = f"{location}/{file}"
    return "file:" + whole.removeprefix("file://") if whole.startswith("file:///") else whole


def broken_file(error: Exception, location: str, files: Iterable[str]) -> tuple[str, str] | None:
    """The file that the failure names, with the reason; None if it names none of these."""
    named, text = error if isinstance(error, DataFileUnreadable) else named_failure(error), str(error)
    if isinstance(named, DataFileUnreadable):
        place, problem = unquote(named.facts["file"]), named.facts["problem"]
    elif _NOT_FOUND in text:
        place, problem = text.split(_NOT_FOUND, 1)[1].split(". SQLSTATE")[0], GONE
    else:
        return None
    for file in files:
        if place in (spark_name(location, file), f"{location}/{file}"):
            return file, problem
    return None
