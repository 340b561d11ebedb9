"""Constant expressions, as points in time are written (R8e): numbers, strings, times and arithmetic with them.

Parsed by sqlglot in the Snowflake dialect. A time without a zone is a naive datetime until it must be a moment.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal

from sqlglot import exp

from tidemark.model.foreign_json import exact_number
from tidemark.sql.foreign_sql import SNOWFLAKE, SqlNotUnderstood, tree_of, written

__all__ = ["Constant", "Constants", "NotConstant"]

Constant = datetime | Decimal | str | None

_Type = exp.DataType.Type
WITHOUT_ZONE = (_Type.TIMESTAMP, _Type.TIMESTAMPNTZ, _Type.DATETIME, _Type.DATE)
WITH_ZONE = (_Type.TIMESTAMPTZ, _Type.TIMESTAMPLTZ)
FORMS = ("%a, %d %b %Y %H:%M:%S %z", "%Y-%m-%d %H:%M:%S.%f %z", "%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %H:%M %z")
MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_DIGITS = 38  # of a NUMBER
LENGTHS = {
    "WEEK": timedelta(weeks=1),
    "DAY": timedelta(days=1),
    "HOUR": timedelta(hours=1),
    "MINUTE": timedelta(minutes=1),
    "SECOND": timedelta(seconds=1),
    "MILLISECOND": timedelta(milliseconds=1),
    "MICROSECOND": timedelta(microseconds=1),
}


class NotConstant(ValueError):
    """The expression has no value of its own, or one that this dialect does not know."""


@dataclass(frozen=True)
class Constants:
    """Evaluates expressions at the moment `now`; `zone` is what the session takes for local.

    `variables`: what SET has set, by names in upper case, as in `$name`.
    """

    now: datetime
    zone: tzinfo
    variables: Mapping[str, Constant] = field(default_factory=dict)

    def value(self, text: str) -> Constant:
        """The value of the expression; NULL is None. Raises NotConstant."""
        with _not_constant(text):
            return self._of(tree_of(text, SNOWFLAKE))

    def selected(self, text: str) -> Constant:
        """As `value`, also of a SELECT of one constant in parentheses. Raises NotConstant."""
        with _not_constant(text):
            tree = tree_of(text, SNOWFLAKE)
            return self._selected(tree) if isinstance(tree, exp.Subquery) else self._of(tree)

    def moment(self, value: Constant) -> datetime:
        """The moment that a time or a string means; without a zone it is UTC. Raises NotConstant."""
        with _not_constant(str(value)):
            time = self._time(value) if isinstance(value, str) else value
            if not isinstance(time, datetime):
                raise NotConstant(str(value))
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)

    def _of(self, node: exp.Expression) -> Constant:
        rule = _RULES.get(type(node))
        if rule is None:
            raise NotConstant(written(node, SNOWFLAKE))
        found = rule(self, node)
        if isinstance(found, Decimal) and not (found.is_finite() and abs(found.adjusted()) <= _DIGITS):
            raise NotConstant(written(node, SNOWFLAKE))
        return found

    def _number(self, node: exp.Expression) -> Decimal:
        found = self._of(node)
        if isinstance(found, str):
            found = exact_number(found)
        if not isinstance(found, Decimal):
            raise NotConstant(written(node, SNOWFLAKE))
        return found

    def _cast(self, node: exp.Expression) -> Constant:
        kind = node.args["to"].this
        found = self._of(node.this)
        if found is None:
            return None
        if kind in WITHOUT_ZONE + WITH_ZONE:
            time = self._epoch(found) if isinstance(found, Decimal) else self._time(found)
            if kind == _Type.DATE:
                time = time.replace(hour=0, minute=0, second=0, microsecond=0)
            return time.replace(tzinfo=self.zone) if kind in WITH_ZONE and time.tzinfo is None else time
        if kind in exp.DataType.NUMERIC_TYPES:
            return self._number(node.this)
        raise NotConstant(written(node, SNOWFLAKE))

    def _time(self, value: str | datetime) -> datetime:
        if isinstance(value, datetime):
            return value
        text = value.strip()
        if text.isascii() and text.isdigit() and len(text) > 8:
            return self._epoch(Decimal(text))
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
        for form in FORMS:
            try:
                return datetime.strptime(text, form)  # noqa: DTZ007 - every form has a zone
            except ValueError:
                continue
        raise NotConstant(value)

    def _formatted(self, node: exp.Expression) -> datetime:
        found, form = self._of(node.this), self._of(node.args["format"])
        if not isinstance(found, str) or not isinstance(form, str):
            raise NotConstant(written(node, SNOWFLAKE))
        try:
            time = datetime.strptime(found, form)  # noqa: DTZ007 - a zone is added below where one is meant
        except ValueError as error:
            raise NotConstant(written(node, SNOWFLAKE)) from error
        target = node.args.get("target_type")
        with_zone = isinstance(target, exp.DataType) and target.this in WITH_ZONE
        return time.replace(tzinfo=self.zone) if with_zone and time.tzinfo is None else time

    def _epoch(self, number: Decimal) -> datetime:
        """Seconds, or thousandths, millionths, billionths of them, by the size of the number."""
        for scale in (1, 10**3, 10**6, 10**9):
            if abs(number) < Decimal(31536000000) * scale:
                return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(number * 10**6 / scale))
        raise NotConstant(str(number))

    def _sum(self, node: exp.Expression) -> Constant:
        left, right = node.this, node.expression
        sign = -1 if isinstance(node, exp.Sub) else 1
        if isinstance(right, exp.Interval):
            return self._shifted(self._of(left), self._number(right.this) * sign, right.args.get("unit"))
        return self._number(left) + sign * self._number(right)

    def _added(self, node: exp.Expression) -> datetime:
        return self._shifted(self._of(node.this), self._number(node.expression), node.args.get("unit"))

    def _shifted(self, value: Constant, count: Decimal, unit: exp.Expression | None) -> datetime:
        time = self._time(value) if isinstance(value, str) else value
        name = unit.name.upper().removesuffix("S") if unit is not None else "DAY"
        if isinstance(time, datetime) and name in LENGTHS:
            return time + LENGTHS[name] * float(count)
        if isinstance(time, datetime) and name in MONTHS and count == int(count):
            return _months_later(time, int(count) * MONTHS[name])
        raise NotConstant(name)

    def _function(self, node: exp.Expression) -> Constant:
        name, arguments = str(node.this).upper(), node.expressions
        if name.startswith("TO_TIMESTAMP") and len(arguments) == 1:
            return self._epoch(self._number(arguments[0]))
        if name in ("NOW", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "GETDATE") and not arguments:
            return self.now
        raise NotConstant(written(node, SNOWFLAKE))

    def _variable(self, node: exp.Expression) -> Constant:
        name = node.name.upper()
        if name not in self.variables:
            raise NotConstant(written(node, SNOWFLAKE))
        return self.variables[name]

    def _selected(self, node: exp.Expression) -> Constant:
        """A SELECT of one constant from nowhere."""
        query = node.this if isinstance(node, exp.Subquery) else node
        columns = query.expressions if isinstance(query, exp.Select) else []
        if len(columns) != 1 or any(query.args.get(clause) for clause in ("from_", "from", "where")):
            raise NotConstant(written(node, SNOWFLAKE))
        column = columns[0]
        return self._of(column.this if isinstance(column, exp.Alias) else column)

    def _literal(self, node: exp.Expression) -> Constant:
        return str(node.this) if node.is_string else Decimal(str(node.this))


@contextmanager
def _not_constant(text: str) -> Iterator[None]:
    """Raises NotConstant for `text` if a value within is none: divided by zero, or before the first year."""
    try:
        yield
    except NotConstant:
        raise
    except (SqlNotUnderstood, ArithmeticError, ValueError, RecursionError) as error:
        raise NotConstant(text) from error


def _months_later(time: datetime, months: int) -> datetime:
    """The same day of another month, or its last one."""
    years, month = divmod(time.year * 12 + time.month - 1 + months, 12)
    day = min(time.day, calendar.monthrange(years, month + 1)[1])
    return time.replace(year=years, month=month + 1, day=day)


_Rule = Callable[[Constants, "exp.Expression"], Constant]

_RULES: Mapping[type[exp.Expression], _Rule] = {
    exp.Literal: Constants._literal,
    exp.Null: lambda _, node: None,
    exp.Paren: lambda constants, node: constants._of(node.this),
    exp.Neg: lambda constants, node: -constants._number(node.this),
    exp.Mul: lambda constants, node: constants._number(node.this) * constants._number(node.expression),
    exp.Div: lambda constants, node: constants._number(node.this) / constants._number(node.expression),
    exp.Add: Constants._sum,
    exp.Sub: Constants._sum,
    exp.Cast: Constants._cast,
    exp.TryCast: Constants._cast,
    exp.StrToTime: Constants._formatted,
    exp.UnixToTime: lambda constants, node: constants._epoch(constants._number(node.this)),
    exp.CurrentTimestamp: lambda constants, node: constants.now,
    exp.CurrentDate: lambda constants, node: constants.now.astimezone(constants.zone).replace(
        hour=0, minute=0, second=0, microsecond=0
    ),
    exp.DateAdd: Constants._added,
    exp.TimestampAdd: Constants._added,
    exp.TimeAdd: Constants._added,
    exp.TsOrDsAdd: Constants._added,
    exp.Anonymous: Constants._function,
    exp.Parameter: Constants._variable,
}
