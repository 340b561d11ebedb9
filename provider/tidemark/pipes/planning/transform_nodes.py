"""Nodes of a transformation, by their kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from tidemark.pipes.planning.transform_types import Refused
from tidemark.sql.functions import makes_rows

__all__ = ["ARITHMETIC", "COMPARISONS", "LEAVES", "NUMERIC", "OF_TIMES", "operands", "require_row"]

ARITHMETIC: Mapping[type[exp.Expr], str] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
    exp.Div: "try_divide",
    exp.Mod: "try_mod",
}
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.NullSafeEQ)
LEAVES = (exp.Literal, exp.Null, exp.Boolean, exp.Interval)
_NO_VALUES = (exp.DataType, exp.Identifier, exp.Var, exp.IntervalSpan, exp.JSONPath)
NUMERIC = (exp.Neg, exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Sqrt, exp.Pow, exp.Sign, exp.Ln, exp.Log, exp.Exp)
OF_TIMES = (
    *(exp.DateAdd, exp.DateSub, exp.DateDiff, exp.DateTrunc, exp.TimestampTrunc, exp.TimestampAdd, exp.TimestampDiff),
    *(exp.Extract, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Week, exp.DayOfWeek, exp.DayOfMonth, exp.DayOfYear),
    *(exp.LastDay, exp.AddMonths, exp.ConvertTimezone, exp.MonthsBetween),
)
_NO_ROWS = (exp.AggFunc, exp.Window, exp.Subquery, exp.Select, exp.Exists, exp.Star, exp.Lateral, exp.SetOperation)


def require_row(node: exp.Expr) -> None:
    """Raises Refused for parts that need more than a row."""
    if isinstance(node, exp.Window | exp.AggFunc) and not isinstance(node, exp.Anonymous):
        raise Refused("a transformation knows one row at a time: no aggregates and windows")
    if isinstance(node, exp.Star):
        raise Refused("SELECT * is not allowed in a transformation; name the columns, as in $1, $2")
    if isinstance(node, _NO_ROWS):
        raise Refused("a transformation selects from one location only: no subqueries")
    if isinstance(node, exp.Lambda) or makes_rows(node):
        raise Refused("a transformation has no functions of arrays that take a lambda or make rows")


def operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """Direct operands, without types, names and other parts that are no values."""
    for value in node.args.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Expr) and not isinstance(one, _NO_VALUES):
                yield one
