"""Files that mean the same to a reader of Parquet as to one of Delta."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from tidemark.model.table_log import AddFile, Metadata

__all__ = ["plain_paths"]

_DELTAS_OWN = ("delta.columnMapping.", '"delta.typeChanges"', "__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS", '"variant"')
_NO_PATH = re.compile(r"[*?\[\]{}\\]|%[0-9A-Fa-f]{2}")  # Spark takes the first as patterns
_MOST_FILES = 32  # Spark looks at more by a job


def plain_paths(metadata: Metadata, table_uri: str, files: Sequence[AddFile]) -> list[str] | None:
    """The paths of the files, if they have no deletion vector. The table must have neither partitions nor columns
    that only Delta reads. None for others, and for no files or many.
    """
    if not 0 < len(files) <= _MOST_FILES or metadata.partition_columns or any(file.deletion_vector for file in files):
        return None
    said = metadata.schema_json + " ".join(metadata.configuration)
    if any(word in said for word in _DELTAS_OWN):
        return None
    paths = [f"{table_uri}/{unquote(file.path)}" for file in files]
    return paths if all(_is_plain(file.path, path) for file, path in zip(files, paths, strict=True)) else None


def _is_plain(said: str, path: str) -> bool:
    """Whether the path is relative, has no letters that Spark takes as a pattern, and no name that it leaves out."""
    name = path.rsplit("/", 1)[-1]
    inside = not said.startswith("/") and ":" not in said and "=" not in said
    return inside and _NO_PATH.search(path) is None and not name.startswith(("_", "."))
