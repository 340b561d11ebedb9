"""Partial aggregates: their columns in the kept table, for each argument of count, sum and avg by its type."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["COUNT", "FLOATS", "GROUP", "NET", "SIGN", "Argument", "average_of", "partials_of", "sum_of", "unkeepable"]

GROUP = "tidemark_g"  # the n-th group column ends with its number
COUNT = "tidemark_n"  # the signed number of rows; that of an argument's values ends with its number
NET = "tidemark_net_"  # a partial aggregate over all rows of its group is this and its name
SIGN = "tidemark_sign"

FLOATS = ("float", "double")
_SMALL = ("byte", "short", "integer")  # no number of rows that a table can have overflows their sum as BIGINT
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_LONG_DIGITS = 19
_DIGITS = 38
_SUM_DIGITS = 10  # Spark's sum over DECIMAL(p, s) has p + 10 digits
_AVERAGE_DIGITS = 4  # and its average 4 more, all of them behind the point
_MOST_FOR_AVERAGE = 15  # with more, the division of sum and count may round twice


@dataclass(frozen=True)
class Argument:
    """A column of the followed query that is aggregated. `kind`: its type as in schemas; boolean for a condition
    whose rows are counted.
    """

    number: int
    kind: str

    @property
    def column(self) -> str:
        """Its name in the followed query."""
        return f"tidemark_a{self.number}"

    @property
    def count(self) -> str:
        """The name of the signed number of its values."""
        return f"{COUNT}{self.number}"

    @property
    def total(self) -> str:
        """The name of the signed sum of its values, without those that are not finite."""
        return f"tidemark_s{self.number}"

    def special(self, name: str) -> str:
        """The name of the signed number of values that are `nan`, `high` or `low` (infinite)."""
        return f"tidemark_{name}{self.number}"


def unkeepable(kind: str, *, drifting: bool, averaged: bool) -> str | None:
    """The reason why sums over the type cannot be kept as partial aggregates; None if they can."""
    if kind in FLOATS:
        return (
            None if drifting else f"sums over {kind.upper()} are rounded, so changed groups are computed from the base"
        )
    found = _DECIMAL.fullmatch(kind)
    if found is None:
        return None if kind in (*_SMALL, "long") else f"sums over {kind} are computed from the base"
    if averaged and int(found[1]) > _MOST_FOR_AVERAGE:
        return f"averages over {kind.upper()} are computed from the base, since they have more than 38 digits"
    return None


def partials_of(argument: Argument, *, summed: bool) -> dict[str, str]:
    """The partial aggregates of an argument: name → expression over signed rows."""
    a = argument.column
    if not summed:
        return {argument.count: f"COALESCE(SUM(CASE WHEN {a} THEN {SIGN} ELSE 0 END), 0)"}
    count = {argument.count: f"COALESCE(SUM(CASE WHEN {a} IS NOT NULL THEN {SIGN} ELSE 0 END), 0)"}
    if argument.kind not in FLOATS:
        value = {"long": f"CAST({a} AS DECIMAL({_LONG_DIGITS}, 0))"}.get(argument.kind, a)
        if argument.kind in _SMALL:
            value = f"CAST({a} AS BIGINT)"
        total = f"SUM(CASE WHEN {SIGN} < 0 THEN -{value} ELSE {value} END)"
        return count | {argument.total: f"CAST({total} AS DECIMAL({_DIGITS}, 0))" if argument.kind == "long" else total}
    infinite = "double('Infinity')"
    specials = {"nan": f"isnan({a})", "high": f"{a} = {infinite}", "low": f"{a} = -{infinite}"}
    finite = f"NOT isnan({a}) AND abs({a}) < {infinite}"
    return (
        count
        | {argument.total: f"SUM(CASE WHEN {finite} THEN CAST({a} AS DOUBLE) * {SIGN} END)"}
        | {argument.special(n): f"COALESCE(SUM(CASE WHEN {c} THEN {SIGN} ELSE 0 END), 0)" for n, c in specials.items()}
    )


def sum_of(argument: Argument) -> str:
    """The sum of the argument from net partial aggregates, with Spark's type."""
    total = f"{NET}{argument.total}"
    if argument.kind in FLOATS:
        return f"CASE WHEN {NET}{argument.count} > 0 THEN {_float_total(argument)} END"
    return f"CASE WHEN {NET}{argument.count} > 0 THEN CAST({total} AS {_sum_type(argument.kind)}) END"


def average_of(argument: Argument) -> str:
    """The average of the argument from net partial aggregates, with Spark's type."""
    total, count = f"{NET}{argument.total}", f"{NET}{argument.count}"
    found = _DECIMAL.fullmatch(argument.kind)
    if found is None:
        total = _float_total(argument) if argument.kind in FLOATS else f"CAST({total} AS DOUBLE)"
        value = f"{total} / CAST({count} AS DOUBLE)"
    else:
        precision, scale = int(found[1]) + _AVERAGE_DIGITS, int(found[2]) + _AVERAGE_DIGITS
        divided = f"CAST({total} AS {_sum_type(argument.kind)}) / CAST({count} AS DECIMAL(20, 0))"
        value = f"CAST({divided} AS DECIMAL({precision}, {scale}))"
    return f"CASE WHEN {count} > 0 THEN {value} END"


def _sum_type(kind: str) -> str:
    found = _DECIMAL.fullmatch(kind)
    return "BIGINT" if found is None else f"DECIMAL({min(int(found[1]) + _SUM_DIGITS, _DIGITS)}, {found[2]})"


def _float_total(argument: Argument) -> str:
    nan, high, low = (f"{NET}{argument.special(name)} > 0" for name in ("nan", "high", "low"))
    return (
        f"CASE WHEN {nan} OR ({high} AND {low}) THEN double('NaN') WHEN {high} THEN double('Infinity') "
        f"WHEN {low} THEN double('-Infinity') ELSE COALESCE({NET}{argument.total}, 0.0D) END"
    )
