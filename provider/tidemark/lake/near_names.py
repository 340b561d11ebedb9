"""Hints for a mistyped table name: the place of the search, and similar names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from tidemark.errors import LakeError
from tidemark.lake.file_names import HIDDEN
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.lake.storage import Storage
from tidemark.sql.alike import alike
from tidemark.sql.identifiers import quoted, spelled

__all__ = ["hint_for"]

_NAMES = 10_000  # compared in one directory
_SCHEMAS = 20  # searched for a name without a schema
_SHOWN = 3


def hint_for(
    name: str, parts: Sequence[str], lake_root: str, options: Mapping[str, str] | None = None, *, origin: str = ""
) -> str:
    """A hint with the place of the search for `name`, and up to three similar tables. `parts`: of the name.

    It takes a few listings at most. If a storage does not answer, the hint has no names; it never raises.
    """
    searched = f"The name {name!r} was looked for below the lake root {lake_root}{f' ({origin})' if origin else ''}"
    try:
        storage = Storage(lake_root, options)
        found = _near(storage, parts)
        if not found and not _directories(storage, ""):
            return f"{searched}, which holds no tables. Check the lake root."
    except (LakeError, OSError, ValueError):
        return f"{searched}. Check the name or the lake root."
    if not found:
        return f"{searched}, which has no similar name. Check the name or the lake root."
    return f"{searched}. Did you mean {' or '.join(found)}?"


def _near(storage: Storage, parts: Sequence[str]) -> list[str]:
    """Names of tables in the named schema, or in the one or two most similar schemas."""
    *schema, table = parts
    outer = _directories(storage, "")
    found: list[tuple[str, ...]] = []
    if not schema:
        found = [(one,) for one in alike(table, outer)]
        found += [(one, table) for one in outer[:_SCHEMAS]]
    elif len(schema) == 1:
        whole = ".".join(parts)  # the backticks of which a statement has dropped
        found = [(whole,)] if whole in outer else []
        schemas = [schema[0]] if schema[0] in outer else alike(schema[0], outer)[:2]
        found += [(one, like) for one in schemas for like in alike(table, _directories(storage, one))]
    tables = (one for one in found if storage.exists("/".join((*one, LOG_DIRECTORY))))
    return [_shown(storage, one) for one in islice(tables, _SHOWN)]


def _shown(storage: Storage, parts: Sequence[str]) -> str:
    """A name that a statement reads as it is meant. It reads a name of one part without its backticks, so one with a
    dot is shown by its path.
    """
    if len(parts) == 1 and any(mark in parts[0] for mark in ".`"):
        return f"delta.{quoted(f'{storage.uri}/{parts[0]}'.removeprefix('file://'))}"
    return ".".join(spelled(part) for part in parts)


def _directories(storage: Storage, directory: str) -> list[str]:
    """The names below a place that may be directories. A file or a missing place has none."""
    try:
        found = (name for name in storage.names(directory) if not name.startswith(HIDDEN) and name.isprintable())
        return list(islice(found, _NAMES))
    except (FileNotFoundError, NotADirectoryError):
        return []
