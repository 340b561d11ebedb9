"""Where a table's name was looked for, and which names there are like it, for whoever mistyped it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from tidemark.errors import LakeError
from tidemark.lake.file_names import HIDDEN
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.lake.storage import Storage
from tidemark.sql.alike import alike
from tidemark.sql.identifiers import spelled

__all__ = ["hint_for"]

_NAMES = 10_000  # of one directory, that are compared
_SCHEMAS = 20  # in which a name without a schema is looked for
_SHOWN = 3


def hint_for(
    name: str, parts: Sequence[str], lake_root: str, options: Mapping[str, str] | None = None, *, origin: str = ""
) -> str:
    """Where `name`, taken apart into `parts`, was looked for, and up to three tables with names like it.

    A handful of listings at most. A storage that does not answer costs the names alone: it never raises.
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
        return f"{searched}, where no name is like it. Check the name or the lake root."
    return f"{searched}. Did you mean {' or '.join(found)}?"


def _near(storage: Storage, parts: Sequence[str]) -> list[str]:
    """Names of tables: in the schema that was named, or in the one or two that are most like it."""
    *schema, table = parts
    outer = _directories(storage, "")
    found: list[tuple[str, ...]] = []
    if not schema:
        found = [(one,) for one in alike(table, outer)]
        found += [(one, table) for one in outer[:_SCHEMAS]]
    elif len(schema) == 1:
        schemas = [schema[0]] if schema[0] in outer else alike(schema[0], outer)[:2]
        found = [(one, like) for one in schemas for like in alike(table, _directories(storage, one))]
    tables = (one for one in found if storage.exists("/".join((*one, LOG_DIRECTORY))))
    return [".".join(spelled(part) for part in one) for one in islice(tables, _SHOWN)]


def _directories(storage: Storage, directory: str) -> list[str]:
    """What may be a directory there; what is gone or a file has none below it."""
    try:
        found = (name for name in storage.names(directory) if not name.startswith(HIDDEN) and name.isprintable())
        return list(islice(found, _NAMES))
    except (FileNotFoundError, NotADirectoryError):
        return []
