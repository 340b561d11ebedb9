"""Whether Spark gives our form of a view's query the meaning of the view: the two optimized plans must be equal."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from tidemark.changes.planning.views.parts import is_linear, numbered
from tidemark.errors import ViewNotUnderstood, ViewRefused
from tidemark.jobs.settings import under
from tidemark.model.views import BASE, ViewQuery

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

__all__ = ["require_same_meaning"]

_LEVEL = 3  # characters before a child in the text of a plan
_WHOLE_TEXT = {"spark.sql.debug.maxToStringFields": "100000"}
_NOT_LINEAR = frozenset(
    {
        *("Aggregate", "Window", "Generate", "Distinct", "Deduplicate", "Limit", "GlobalLimit", "LocalLimit"),
        *("Intersect", "Except", "Sample", "Expand", "Offset", "Tail", "MapInPandas", "BatchEvalPython"),
        *("ArrowEvalPython", "UserDefinedFunction"),
    }
)
_ATTRIBUTE = re.compile(r"[^\s\[\](),=<>+*/%-]*#(\d+)L?")
_DISTINCTS = "+- Expand [["
_ASKED = 16
_ASKS_TIME = re.compile(r"CURRENT_|localtimestamp", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?|\b\d{16,19}\b")


def require_same_meaning(spark: SparkSession, query: ViewQuery, text: str | None = None) -> None:
    """Nothing, if Spark makes the same plan of query and view. `text`: the query as its user gave it, with names that
    Spark knows; None for a view of a catalog.

    A parser that is not Spark's has parsed and rewritten the text. Raises ViewNotUnderstood if the plans differ. Raises
    ViewRefused for operators of Spark's plan that cannot be followed and that the text does not show.
    """
    ours = re.sub(rf"{BASE}(\d+)", lambda found: query.bases[int(found[1])], query.text)

    def plans() -> tuple[str, str]:
        with under(spark, _WHOLE_TEXT):
            theirs = "" if text else _explained(spark, f"SELECT * FROM {query.name}")
            with under(spark, query.settings):
                return _explained(spark, text) if text else theirs, _explained(spark, ours)

    theirs, mine = plans()
    if "== Optimized" not in theirs or "== Optimized" not in mine:
        raise ViewNotUnderstood(view=query.name, problem=f"Spark says: {_first_error(theirs, mine)}")
    if is_linear(numbered(query).tree):
        for operator in _operators(_section(theirs, "Analyzed", "Optimized")):
            if operator in _NOT_LINEAR:
                raise ViewRefused(construct=f"'{operator}'", view=query.name, line=1, column=1, fragment="", instead="")
    if not _meet(theirs, mine, plans, asks_time=_ASKS_TIME.search(query.text) is not None):
        raise ViewNotUnderstood(view=query.name, problem="Spark makes another plan of our form of it than of the view")


def _meet(theirs: str, mine: str, plans: Callable[[], tuple[str, str]], *, asks_time: bool) -> bool:
    """Whether the two plans are equal. Spark orders several DISTINCT groups of an aggregate by hashes of new numbers,
    in another way each time. Such plans are asked for until one of the one text equals one of the other.
    """
    shapes = {_shape(theirs, asks_time)}, {_shape(mine, asks_time)}
    asked = 1
    while not shapes[0] & shapes[1] and asked < _ASKED and _DISTINCTS in theirs and _DISTINCTS in mine:
        for found, plan in zip(shapes, plans(), strict=True):
            found.add(_shape(plan, asks_time))
        asked += 1
    return bool(shapes[0] & shapes[1])


def _explained(spark: SparkSession, text: str) -> str:
    return str(spark.sql("EXPLAIN EXTENDED " + text).collect()[0][0])


def _first_error(*texts: str) -> str:
    return next(text.strip().splitlines()[-1] for text in texts if "== Optimized" not in text)


def _section(text: str, first: str, then: str) -> str:
    return text.split(f"== {first} Logical Plan ==", 1)[1].split(f"== {then} ", 1)[0]


def _operators(plan: str) -> list[str]:
    found = (re.match(r"[\s:+-]*(\w+)", line) for line in plan.splitlines())
    return [match[1] for match in found if match]


def _shape(text: str, asks_time: bool) -> str:
    """The optimized plan without names and numbers of columns, and without times if each plan has its own.

    Rows have no order, and a comma in FROM is a cross join in our form.
    """
    plan = text.split("== Optimized Logical Plan ==", 1)[1].split("== Physical Plan ==", 1)[0]
    numbers: dict[str, int] = {}
    counted = count()

    def renumbered(match: re.Match[str]) -> str:
        if match[1] not in numbers:
            numbers[match[1]] = next(counted)
        return f"#{numbers[match[1]]}"

    shape = _ATTRIBUTE.sub(renumbered, _unsorted(plan)).replace("Join Cross", "Join Inner")
    return _TIME.sub("?", shape) if asks_time else shape


def _unsorted(plan: str) -> str:
    """The plan without a sort of its result."""
    lines = plan.strip().splitlines()
    return "\n".join(line[_LEVEL:] for line in lines[1:]) if lines[0].startswith("Sort [") else "\n".join(lines)
