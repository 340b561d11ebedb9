"""The meaning of a table's name, for the client, operators and commands (decision 15)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.model.streams import Addressing

__all__ = ["TableName", "in_catalogs", "table_name"]

_BY_PATH = re.compile(r"delta\.`(.+)`", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_IN_BACKTICKS = re.compile(r"`(?:[^`]|``)*`")
_WITH_CATALOG = 3  # catalog.schema.table, and a catalog may have schemas within schemas


@dataclass(frozen=True)
class TableName:
    """A name, taken apart. `path`: the path or URI that it is, None for a name. `ways`: how it may lead to its table;
    they are tried in turn, and the first that knows the table wins.
    """

    text: str
    parts: tuple[str, ...]
    path: str | None
    ways: tuple[Addressing, ...]

    @property
    def only_in_catalog(self) -> bool:
        """Whether nobody but a catalog of Spark knows the name, so that a task starts a job to ask it."""
        return self.ways == (Addressing.CATALOG,)


def table_name(name: str) -> TableName:
    """The meaning of a name. A path, a URI and delta.`path` are themselves. A name with a catalog is that catalog's.
    Any other name is a table below the lake root, or else one of the session's catalog.
    """
    text = name.strip()
    parts = tuple(quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(text))
    by_path = _BY_PATH.fullmatch(text)
    if by_path is not None:
        return TableName(text, parts, by_path[1].replace("``", "`"), (Addressing.PATH,))
    if "/" in _IN_BACKTICKS.sub("", text):
        return TableName(text, parts, text, (Addressing.PATH,))
    if len(parts) >= _WITH_CATALOG:
        return TableName(text, parts, None, (Addressing.CATALOG,))
    return TableName(text, parts, None, (Addressing.LAKE, Addressing.CATALOG))


def in_catalogs(tables: Mapping[str, str]) -> dict[str, str]:
    """The entries whose name only a catalog knows. `tables`: name → anything."""
    return {name: value for name, value in tables.items() if table_name(name).only_in_catalog}
