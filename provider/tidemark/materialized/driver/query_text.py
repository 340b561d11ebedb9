"""The text of a kept query with other names for its tables: names that Spark knows, or numbers of pinned tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidemark.changes.driver.views.catalog import Catalog
from tidemark.changes.planning.views.expand import digest_of
from tidemark.changes.planning.views.text import parse_view
from tidemark.errors import ViewNotUnderstood
from tidemark.materialized.model.jobs import ResolveRequest
from tidemark.model.views import BASE, StoredTable, StoredView
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import TableMention, parse_statement, path_name, splice

__all__ = ["Names", "Pinned", "as_spark_knows", "renamed"]

_DEEPEST = 100


@dataclass(frozen=True)
class Names:
    """The meaning of names. Those of the request are known in its own text alone, whose namespace is `namespace`.
    `files`: each external table's name → that of a temporary view with its columns.
    """

    request: ResolveRequest
    catalog: Catalog
    namespace: tuple[str, ...]
    files: Mapping[str, str]

    def resolve(self, parts: tuple[str, ...], namespace: tuple[str, ...]) -> StoredTable | StoredView:
        """The table or view that a name in a text of `namespace` means. Raises TableNotFound."""
        if namespace is self.namespace:
            name = TableMention(parts, 0, 0, takes_alias=False).name
            path = self.request.tables.get(name)
            if path is not None:
                return StoredTable(path_name(path))
            if name in self.files:
                return StoredTable(self.files[name])
            if name in self.request.views:
                return self.request.views[name]
        return self.catalog.resolve(parts, namespace)


def as_spark_knows(request: ResolveRequest, files: Mapping[str, str]) -> str:
    """The text of the request with paths, queries and temporary views (`files`) in place of names that Spark's catalogs
    do not know.
    """
    parsed = parse_statement(request.text)
    meant = {name: path_name(path) for name, path in request.tables.items()}
    meant |= files
    meant |= {name: f"({renamed(view, view.text)})" for name, view in request.views.items()}
    return splice(parsed, meant)


@dataclass
class Pinned:
    """The text of a query over numbered base tables, with the texts of its views in place. Nothing else is changed."""

    resolve: Callable[[tuple[str, ...], tuple[str, ...]], StoredTable | StoredView]
    bases: list[str] = field(default_factory=list)
    views: dict[str, str] = field(default_factory=dict)

    def text(self, view: StoredView, depth: int = 0) -> str:
        """The view's text. Raises ViewNotUnderstood, TableNotFound, and ViewRefused for a table without versions."""
        if depth > _DEEPEST:
            raise ViewNotUnderstood(view=view.name, problem=f"it has more than {_DEEPEST} nested views")
        parsed = parse_statement(view.text)
        meant = {}
        for mention in parsed.mentions:
            found = self.resolve(mention.parts, view.namespace)
            if isinstance(found, StoredView):
                self.views[found.name] = digest_of(found)
                meant[mention.name] = f"({renamed(found, self.text(found, depth + 1))})"
            elif found.kind is not None:
                text = parse_view(view.name, view.text)
                raise text.refused(f"'{found.kind}'", text.tree)
            else:
                meant[mention.name] = self._base(found.name)
        return splice(parsed, meant)

    def _base(self, name: str) -> str:
        if name not in self.bases:
            self.bases.append(name)
        return f"{BASE}{self.bases.index(name)}"


def renamed(view: StoredView, text: str) -> str:
    """A SELECT of the view's columns under its names. It finds them by name, as a star may have more columns by now."""
    columns = []
    for column in view.columns:
        value = quoted(column.source)
        value = value if column.kind is None else f"CAST({value} AS {column.kind})"
        columns.append(f"{value} AS {quoted(column.name)}")
    return f"SELECT {', '.join(columns)} FROM (\n{text}\n) AS tidemark_view"
