"""A catalog of views and tables in memory, and golden files of queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidemark.changes.planning.views.expand import expand
from tidemark.model.views import StoredTable, StoredView, ViewColumn, ViewQuery

__all__ = ["Catalog", "golden", "view"]

NAMESPACE = ("lake", "db")
GOLDEN = Path(__file__).parent / "golden"
BUILTIN = frozenset({"to_json", "struct", "monotonically_increasing_id", "stack", "unix_timestamp"})


@dataclass
class Catalog:
    """Names in `lake.db`: views that were put in, other names are tables."""

    views: dict[str, StoredView] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, parts: tuple[str, ...], namespace: tuple[str, ...]) -> StoredTable | StoredView:
        full = ".".join((*namespace[: max(3 - len(parts), 0)], *parts)).lower()
        return self.views.get(full) or StoredTable(full, self.kinds.get(full))

    def put(self, name: str, text: str, *columns: str, **settings: str) -> None:
        self.views[f"lake.db.{name}"] = view(name, text, *columns, **settings)

    def query(self, text: str, *columns: str, beyond: bool = False) -> ViewQuery:
        return expand(view("v", text, *columns), "{}", self.resolve, beyond=beyond, is_builtin=BUILTIN.__contains__)


def view(name: str, text: str, *columns: str, **settings: str) -> StoredView:
    """A view whose columns are called as its query calls them, or `query's name:name`."""
    pairs = [column.partition(":") for column in columns or ("a",)]
    named = tuple(ViewColumn(name=own or source, source=source) for source, _, own in pairs)
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    return StoredView(f"lake.db.{name}", text, NAMESPACE, named, dotted)


def golden(name: str) -> Iterator[tuple[str, list[str], str]]:
    """The cases of a golden file: title, the paragraphs of what is given, and what must come out.

    A case begins with `## title`; its paragraphs are parted by blank lines, and the last is what comes out.
    """
    for case in (GOLDEN / name).read_text().split("## ")[1:]:
        title, _, rest = case.partition("\n")
        given, _, expected = rest.strip().partition("\n=>\n")
        yield title.strip(), given.strip().split("\n\n"), expected.strip()
