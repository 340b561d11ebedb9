"""The shape in which the rows of a query are kept."""

from __future__ import annotations

import json
from collections.abc import Callable

from tidemark.materialized.model.shapes import KEPT, KeptShape, Shape
from tidemark.model.views import ViewQuery
from tidemark.sql.identifiers import quoted

__all__ = ["Analyse", "plain_shape", "rows_shape", "shape_of"]

Analyse = Callable[[str], str]
"""The schema (JSON) of a query over tables named BASE and their number. Raises QueryNotAnalysed."""


def shape_of(query: ViewQuery, *, analyse: Analyse, sums: bool, drifting: bool) -> KeptShape:
    """The shape of a query whose changes can be computed. `sums`: partial aggregates may be kept, as for materialized
    views; `drifting`: also of floats.
    """
    return rows_shape(query)


def rows_shape(query: ViewQuery, why: str | None = None) -> KeptShape:
    """The rows of the query with their ids."""
    return KeptShape(Shape.ROWS, query, _all_columns(query), why=why)


def plain_shape(query: ViewQuery, why: str) -> KeptShape:
    """The rows of a query whose changes cannot be computed, for the reason `why`."""
    return KeptShape(Shape.PLAIN, query, _all_columns(query), why=why)


def _all_columns(query: ViewQuery) -> str:
    names = [quoted(str(field["name"])) for field in json.loads(query.schema_json)["fields"]]
    return f"SELECT {', '.join(names)} FROM {KEPT}"
