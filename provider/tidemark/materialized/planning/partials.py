"""Partial aggregates: their columns in the kept table, for each argument of an aggregate by its type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tidemark.streams.model.partial_columns import COUNT, EPOCH, GONE, MAXIMUM, MINIMUM, SIGN

__all__ = ["NET", "Argument", "Role", "argument_column", "net_of", "partials_of", "unkeepable", "value_of"]

NET = "tidemark_net_"  # a partial aggregate over all rows of its group is this and its name

_FLOATS = ("float", "double")
_SMALL = ("byte", "short", "integer")  # no number of rows that a table can have overflows their sum as BIGINT
_ORDERED = (*_FLOATS, *_SMALL, "long", "string", "date", "timestamp", "timestamp_ntz", "boolean")
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_LONG_DIGITS = 19
_DIGITS = 38
_SUM_DIGITS = 10  # Spark's sum over DECIMAL(p, s) has p + 10 digits
_AVERAGE_DIGITS = 4  # and its average 4 more, all of them behind the point
_MOST_FOR_AVERAGE = 15  # with more, the division of sum and count may round twice
_INFINITE = "double('Infinity')"


class Role(StrEnum):
    """The aggregates that can be kept."""

    COUNT = "count"
    SUM = "sum"
    AVERAGE = "avg"
    LOW = "min"
    HIGH = "max"


_SUMMED = (Role.SUM, Role.AVERAGE)


@dataclass(frozen=True)
class Argument:
    """A column of the followed query that is aggregated. `kind`: its type as in schemas; `roles`: its aggregates. For
    COUNT alone it is a condition, whose rows are counted.
    """

    number: int
    kind: str
    roles: frozenset[Role]

    @property
    def column(self) -> str:
        """Its name in the followed query."""
        return argument_column(self.number)

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

    def extreme(self, role: Role, *, gone: bool = False) -> str:
        """The name of the least or greatest value that came. `gone`: that went, which is not kept."""
        return f"{GONE if gone else 'tidemark_'}{role.value}{self.number}"


def argument_column(number: int) -> str:
    """The name of an argument in the followed query."""
    return f"tidemark_a{number}"


def unkeepable(argument: Argument, *, drifting: bool) -> str | None:
    """The reason why the argument's aggregates cannot be kept as partial ones; None if they can."""
    kind, roles = argument.kind, argument.roles
    found = _DECIMAL.fullmatch(kind)
    if roles & {Role.LOW, Role.HIGH} and found is None and kind not in _ORDERED:
        return f"minima and maxima over {kind} are computed from the base"
    if not roles.intersection(_SUMMED):
        return None
    if kind in _FLOATS:
        why = f"sums over {kind.upper()} are rounded, so the groups of changed rows are computed from the base"
        return None if drifting else why
    if found is None:
        return None if kind in (*_SMALL, "long") else f"sums over {kind} are computed from the base"
    if Role.AVERAGE in roles and int(found[1]) > _MOST_FOR_AVERAGE:
        return f"averages over {kind.upper()} are computed from the base, since they have more than 38 digits"
    return None


def partials_of(argument: Argument) -> dict[str, str]:
    """The partial aggregates of an argument: name → expression over signed rows."""
    a = argument.column
    if argument.roles == {Role.COUNT}:
        return {argument.count: _signed_count(a)}
    found = {argument.count: _signed_count(f"{a} IS NOT NULL")}
    if argument.roles.intersection(_SUMMED):
        found |= _float_totals(argument) if argument.kind in _FLOATS else {argument.total: _total(argument)}
    for role in sorted(argument.roles & {Role.LOW, Role.HIGH}):
        for gone in (False, True):
            side = f"{SIGN} < 0" if gone else f"{SIGN} > 0"
            found[argument.extreme(role, gone=gone)] = f"{role.value.upper()}(CASE WHEN {side} THEN {a} END)"
    return found


def net_of(name: str) -> str:
    """The partial aggregate of all rows of a group. It is NULL if there are no values."""
    if name.startswith(MINIMUM):
        return f"MIN_BY({name}, STRUCT(-{EPOCH}, {name} IS NULL, {name}))"
    if name.startswith(MAXIMUM):
        return f"MAX_BY({name}, STRUCT({EPOCH}, {name} IS NOT NULL, {name}))"
    return f"SUM({name})" if name.startswith("tidemark_s") else f"COALESCE(SUM({name}), 0)"


def value_of(argument: Argument, role: Role) -> str:
    """The aggregate from net partial ones, with Spark's type."""
    if role is Role.COUNT:
        return f"{NET}{argument.count}"
    value = {Role.SUM: _sum_of, Role.AVERAGE: _average_of}.get(role)
    found = f"{NET}{argument.extreme(role)}" if value is None else value(argument)
    return f"(CASE WHEN {NET}{argument.count} > 0 THEN {found} END)"


def _signed_count(condition: str) -> str:
    return f"COALESCE(SUM(CASE WHEN {condition} THEN {SIGN} ELSE 0 END), 0)"


def _total(argument: Argument) -> str:
    a = argument.column
    if argument.kind in _SMALL:
        a = f"CAST({a} AS BIGINT)"
    elif argument.kind == "long":
        a = f"CAST({a} AS DECIMAL({_LONG_DIGITS}, 0))"
    total = f"SUM(CASE WHEN {SIGN} < 0 THEN -{a} ELSE {a} END)"
    return f"CAST({total} AS DECIMAL({_DIGITS}, 0))" if argument.kind == "long" else total


def _float_totals(argument: Argument) -> dict[str, str]:
    a = argument.column
    specials = {"nan": f"isnan({a})", "high": f"{a} = {_INFINITE}", "low": f"{a} = -{_INFINITE}"}
    finite = f"NOT isnan({a}) AND abs({a}) < {_INFINITE}"
    total = f"SUM(CASE WHEN {finite} THEN CAST({a} AS DOUBLE) * {SIGN} END)"
    counts = {argument.special(name): _signed_count(condition) for name, condition in specials.items()}
    return {argument.total: total, **counts}


def _sum_of(argument: Argument) -> str:
    if argument.kind in _FLOATS:
        return _float_total(argument)
    return f"CAST({NET}{argument.total} AS {_sum_type(argument.kind)})"


def _average_of(argument: Argument) -> str:
    total, count = f"{NET}{argument.total}", f"{NET}{argument.count}"
    found = _DECIMAL.fullmatch(argument.kind)
    if found is None:
        total = _float_total(argument) if argument.kind in _FLOATS else f"CAST({total} AS DOUBLE)"
        return f"{total} / CAST({count} AS DOUBLE)"
    precision, scale = int(found[1]) + _AVERAGE_DIGITS, int(found[2]) + _AVERAGE_DIGITS
    divided = f"CAST({total} AS {_sum_type(argument.kind)}) / CAST({count} AS DECIMAL(20, 0))"
    return f"CAST({divided} AS DECIMAL({precision}, {scale}))"


def _sum_type(kind: str) -> str:
    found = _DECIMAL.fullmatch(kind)
    return "BIGINT" if found is None else f"DECIMAL({min(int(found[1]) + _SUM_DIGITS, _DIGITS)}, {found[2]})"


def _float_total(argument: Argument) -> str:
    nan, high, low = (f"{NET}{argument.special(name)} > 0" for name in ("nan", "high", "low"))
    return (
        f"CASE WHEN {nan} OR ({high} AND {low}) THEN double('NaN') WHEN {high} THEN {_INFINITE} "
        f"WHEN {low} THEN -{_INFINITE} ELSE COALESCE({NET}{argument.total}, 0.0D) END"
    )
