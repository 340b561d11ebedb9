"""Values of a transformation: trees of the source system's SQL rewritten for Spark, with checks of conversions.

No conversion and no arithmetic raises in Spark: it gives NULL, and a check of the row says so. A check in a branch that
is not taken is false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sqlglot import exp

from tidemark.errors import NotYetSupported
from tidemark.pipes.planning.transform_functions import (
    CASTS,
    NUMBER,
    NUMBERS,
    REFUSED,
    literal_of,
    number_type,
    pattern_of,
)
from tidemark.pipes.planning.transform_nodes import (
    ARITHMETIC,
    COMPARISONS,
    LEAVES,
    NUMERIC,
    OF_TIMES,
    operands,
    require_row,
)
from tidemark.pipes.planning.transform_paths import elements, path_step, position_of, shown, steps_of
from tidemark.pipes.planning.transform_types import Refused, TypeOf, call, converted, tried, type_of
from tidemark.sql.foreign_sql import SNOWFLAKE, SPARK, written

__all__ = ["METADATA", "Check", "Over", "Refused", "Rewriter"]

METADATA = (
    "METADATA$FILENAME",
    "METADATA$FILE_ROW_NUMBER",
    "METADATA$FILE_LAST_MODIFIED",
    "METADATA$START_SCAN_TIME",
)
"""Columns that each row of a file has, beside its own."""


class Over(StrEnum):
    """How rows reach a transformation: `_1` … `_n` are texts, or `_1` is a variant, or there are named columns."""

    FIELDS = "fields"
    VARIANT = "variant"
    COLUMNS = "columns"


@dataclass(frozen=True)
class Check:
    """`sql`: whether the row is in error, never NULL. `message`: what is wrong; `column`: of the file, as written.
    `value`: SQL of the value that does not fit.
    """

    sql: str
    message: str
    column: str
    value: str


@dataclass(frozen=True)
class _Value:
    """A rewritten tree. A variant has a root and a path in it. `raw`: a text of a file, or a variant: it has no type.
    `number`: it is known to be one.
    """

    tree: exp.Expr
    source: str
    raw: bool = False
    root: exp.Expr | None = None
    path: str = "$"
    number: bool = False

    @property
    def text(self) -> exp.Expr:
        """The value as a text if it is a variant."""
        return self.tree if self.root is None else _get(self.root, self.path, "string")


class Rewriter:
    """One item. `checks` and `positions` are complete after `item`."""

    def __init__(self, over: Over, alias: str | None) -> None:
        self.over = over
        self.alias = alias
        self.checks: list[Check] = []
        self.positions: set[int] = set()
        self._guards: list[exp.Expr] = []

    def item(self, tree: exp.Expr) -> exp.Expr:
        """The value in Spark's SQL. Raises Refused or NotYetSupported."""
        return self._value(tree).tree

    def _value(self, node: exp.Expr) -> _Value:
        require_row(node)
        reader: Callable[[Rewriter, Any], _Value] = next(
            (read for kind, read in _READERS if isinstance(node, kind)), Rewriter._other
        )
        return reader(self, node)

    def _other(self, node: exp.Expr) -> _Value:
        """A node whose operands are rewritten. Variants in it become texts."""
        return self._with(node, lambda values: values)

    def _in_parentheses(self, node: exp.Paren) -> _Value:
        value = self._value(node.this)
        return replace(value, tree=exp.Paren(this=value.tree)) if value.root is None else value

    def _leaf(self, node: exp.Expr) -> _Value:
        return self._typed(node.copy(), node, isinstance(node, exp.Literal) and not node.is_string)

    def _position(self, node: exp.Expr) -> _Value:
        number = node.this.name if isinstance(node.this, exp.Expr) else ""
        if not number.isdigit() or int(number) < 1:
            raise Refused(f"${number or node.name} is not a column of a file; the first is $1")
        return self._field(int(number))

    def _field(self, position: int) -> _Value:
        self.positions.add(position)
        column = _column(f"_{position}")
        if self.over is Over.FIELDS:
            return _Value(column, f"${position}", raw=True)
        if position > 1:
            raise Refused(f"${position} does not exist: files of this type have $1 only, as in $1:name")
        if self.over is Over.COLUMNS:
            raise Refused("$1 is a whole row; select its columns, as in $1:name")
        return _Value(column, "$1", raw=True, root=column)

    def _named(self, node: exp.Column) -> _Value:
        if self.alias is not None and node.table and node.table.casefold() != self.alias.casefold():
            raise Refused(f"{node.table} is not the alias of the files")
        if isinstance(node.this, exp.Parameter):
            return self._position(node.this)
        if isinstance(node.this, exp.Star):
            return self._value(node.this)
        if node.name.upper() in METADATA:
            return _Value(_column(node.name.upper()), node.name.upper())
        if node.name.upper().startswith("METADATA$"):
            raise NotYetSupported(feature=node.name.upper(), instead=f"There are {', '.join(METADATA)}.")
        raise Refused(f"{node.name} is not a column of a file; write $1, $2, … or $1:name")

    def _path(self, node: exp.Expr) -> _Value:
        inner, steps = steps_of(node)
        if not steps:
            return self._other(node)
        if self.over is Over.COLUMNS and position_of(inner) is not None:
            return self._column_path(inner, steps)
        base = self._value(inner)
        if base.root is None and not base.raw and all(isinstance(step, int) for step in steps):
            return _Value(elements(base.tree, steps), base.source + shown(steps))
        if base.root is None:
            raise Refused(f"{base.source} is a text and has no elements; write PARSE_JSON({base.source}){shown(steps)}")
        path = base.path + "".join(map(path_step, steps))
        return _Value(_get(base.root, path, "variant"), base.source + shown(steps), raw=True, root=base.root, path=path)

    def _column_path(self, inner: exp.Expr, steps: list[str | int]) -> _Value:
        if isinstance(inner, exp.Column):
            self._require_alias(inner)
        self.positions.add(1)
        if not isinstance(steps[0], str) or position_of(inner) != 1:
            raise Refused("files of columns have $1 only, and a name behind it, as in $1:name")
        tree = elements(_column(steps[0]), steps[1:])
        return _Value(tree, f"$1{shown(steps)}")

    def _require_alias(self, node: exp.Column) -> None:
        if self.alias is not None and node.table and node.table.casefold() != self.alias.casefold():
            raise Refused(f"{node.table} is not the alias of the files")

    def _cast(self, node: exp.Cast) -> _Value:
        return self._converted(self._value(node.this), type_of(node.to), tries=isinstance(node, exp.TryCast))

    def _called(self, node: exp.Anonymous) -> _Value:
        name = str(node.name).upper()
        if not name.startswith("TM_"):
            return self._other(node)
        name = name.removeprefix("TM_")
        tries, name = name.startswith(("TRY_", "AS_")), name.removeprefix("TRY_")
        if name in REFUSED:
            raise NotYetSupported(feature=f"{name} in a transformation", instead=REFUSED[name])
        if not node.expressions:
            raise Refused(f"{name} needs a value")
        if name in ("GET", "GET_PATH"):
            return self._path(node)
        return self._conversion(name, self._value(node.expressions[0]), node.expressions[1:], tries)

    def _conversion(self, name: str, value: _Value, more: list[exp.Expr], tries: bool) -> _Value:
        if name == "PARSE_JSON":
            return self._parsed_json(value, tries)
        if name == "IS_NULL_VALUE":
            return _Value(call("is_variant_null", value.tree), value.source)
        if name == "TO_BINARY":
            return self._binary(value, more, tries)
        if name == "REGEXP_SUBSTR":
            return self._part(value, more)
        if name in NUMBERS:
            return self._converted(value, number_type(name, more), tries)
        return self._converted(value, CASTS[name], tries, pattern_of(name, more))

    def _parsed_json(self, value: _Value, tries: bool) -> _Value:
        tree = call("try_parse_json", value.text)
        if not tries:
            self._check(value, tree, "it is not JSON")
        return _Value(tree, value.source, raw=True, root=tree)

    def _binary(self, value: _Value, more: list[exp.Expr], tries: bool) -> _Value:
        form = exp.Literal.string((literal_of(more) or "HEX").lower().replace("utf8", "utf-8"))
        tree = call("try_to_binary", value.text, form)
        if not tries:
            self._check(value, tree, "it is not BINARY")
        return _Value(tree, value.source)

    def _part(self, value: _Value, more: list[exp.Expr]) -> _Value:
        if len(more) != 1:
            raise NotYetSupported(feature="REGEXP_SUBSTR with a position or group", instead="Use REGEXP_REPLACE.")
        return _Value(call("regexp_substr", value.text, self._value(more[0]).text), value.source)

    def _digest(self, node: exp.SHA2) -> _Value:
        made = node.copy()
        made.set("length", node.args.get("length") or exp.Literal.number(256))
        return self._other(made)

    def _size(self, node: exp.ArraySize) -> _Value:
        value = self._value(node.this)
        array = value.tree if value.root is None else _get(value.root, value.path, "array<variant>")
        return self._typed(call("array_size", array), node, number=True)

    def _converted(self, value: _Value, type: TypeOf, tries: bool, pattern: str | None = None) -> _Value:
        if type.name == "VARIANT":
            return self._variant(value)
        if pattern is not None and type.name == "STRING":
            return self._printed(value, pattern)
        has_bytes = type.name == "BINARY" and not value.raw  # a text of a file is hex, other values are not
        tree = tried(value.text, type.name) if has_bytes else converted(value.text, type, pattern)
        if not tries and type.name != "STRING":
            self._check(value, tree, f"it is no {type.shown}")
        return _Value(tree, value.source, number=type.is_number)

    @staticmethod
    def _printed(value: _Value, pattern: str) -> _Value:
        if value.raw or value.number:
            raise Refused(f"TO_CHAR prints dates and timestamps in a format; convert {value.source} first")
        return _Value(call("date_format", value.text, exp.Literal.string(pattern)), value.source)

    def _variant(self, value: _Value) -> _Value:
        if value.root is not None:
            return value
        tree = tried(value.tree, "VARIANT")
        return _Value(tree, value.source, raw=True, root=tree)

    def _arithmetic(self, node: exp.Binary) -> _Value:
        left, right = (self._number(self._value(one)) for one in (node.this, node.expression))
        tree = call(ARITHMETIC[type(node)], left.tree, right.tree)
        present = exp.and_(_present(left), _present(right))
        self._add(present, tree, "the result is too large, or there is a division by zero", left.source, left.text)
        return self._typed(tree, node, left.number and right.number)

    def _number(self, value: _Value) -> _Value:
        """A value of a file is read as a number, as there."""
        return self._converted(value, NUMBER, tries=False) if value.raw else value

    def _numeric(self, node: exp.Expr) -> _Value:
        """A function of numbers."""
        return self._with(node, lambda values: [self._number(one) for one in values], number=True)

    def _of_times(self, node: exp.Expr) -> _Value:
        """A function of dates and timestamps, whose operands are converted before."""

        def typed(values: list[_Value]) -> list[_Value]:
            for value in values:
                if value.raw:
                    raise Refused(
                        f"convert {value.source} first, as in {value.source}::date or {value.source}::timestamp"
                    )
            return values

        return self._with(node, typed)

    def _comparison(self, node: exp.Expr) -> _Value:
        """A value of a file is compared with a number as a number."""
        return self._with(node, self._of_one_kind)

    def _of_one_kind(self, values: list[_Value]) -> list[_Value]:
        numbers = any(one.number for one in values)
        return [self._number(one) if numbers else one for one in values]

    def _with(self, node: exp.Expr, change: Callable[[list[_Value]], list[_Value]], number: bool = False) -> _Value:
        """The node with its operands rewritten, then changed together."""
        made = node.copy()
        found = list(operands(made))
        for operand, value in zip(found, change([self._value(one) for one in found]), strict=True):
            operand.replace(value.text.copy())
        return self._typed(made, node, number)

    def _if(self, node: exp.If) -> _Value:
        return self._branches(node, [(node.this, node.args["true"])], node.args.get("false"))

    def _case(self, node: exp.Case) -> _Value:
        found = [(one.this, one.args["true"]) for one in node.args["ifs"]]
        if node.this is not None:
            found = [(exp.EQ(this=node.this.copy(), expression=one.copy()), value) for one, value in found]
        return self._branches(node, found, node.args.get("default"))

    def _branches(self, node: exp.Expr, branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> _Value:
        """CASE; each branch is checked only if its condition is true and those before are not."""
        guards, conditions, values = list(self._guards), [], []
        for one, result in branches:
            conditions.append(self._value(one).text)
            holds = exp.func("COALESCE", conditions[-1].copy(), exp.false())
            self._guards.append(holds)
            values.append((self._value(result), list(self._guards)))
            self._guards[-1] = exp.not_(holds.copy())
        values.append((self._value(exp.null() if default is None else default), list(self._guards)))
        results, numbers = self._results(values)
        self._guards = guards
        made = exp.Case(default=results.pop() if default is not None else None)
        for condition, tree in zip(conditions, results, strict=False):
            made = made.when(condition, tree)
        return self._typed(made, node, numbers)

    def _coalesce(self, node: exp.Coalesce) -> _Value:
        """Each value is checked only if those before are NULL."""
        guards, values = list(self._guards), []
        for one in (node.this, *node.expressions):
            values.append((self._value(one), list(self._guards)))
            self._guards.append(_is_null(values[-1][0].text))
        results, numbers = self._results(values)
        self._guards = guards
        return self._typed(exp.func("COALESCE", *results), node, numbers)

    def _results(self, values: list[tuple[_Value, list[exp.Expr]]]) -> tuple[list[exp.Expr], bool]:
        """Results that have one type, and whether it is a number. Each has the guards of its own checks."""
        numbers, trees = any(value.number for value, _ in values), []
        for value, guards in values:
            self._guards = guards
            trees.append((self._number(value) if numbers else value).text)
        return trees, numbers

    def _check(self, value: _Value, result: exp.Expr, message: str) -> None:
        self._add(_present(value), result, message, value.source, value.text)

    def _add(self, present: exp.Expr, result: exp.Expr, message: str, source: str, value: exp.Expr) -> None:
        tree = exp.and_(*(one.copy() for one in self._guards), present, _is_null(result))
        texts = (written(one, SPARK, comments=False) for one in (tree, value))
        self.checks.append(Check(next(texts), message, source, next(texts)))

    @staticmethod
    def _typed(tree: exp.Expr, node: exp.Expr, number: bool = False) -> _Value:
        return _Value(tree, written(node, SNOWFLAKE, comments=False).replace("TM_", ""), number=number)


def _present(value: _Value) -> exp.Expr:
    return exp.Not(this=_is_null(value.text))


def _get(root: exp.Expr, path: str, type: str) -> exp.Expr:
    return call("try_variant_get", root, exp.Literal.string(path), exp.Literal.string(type))


def _column(name: str) -> exp.Expr:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def _is_null(tree: exp.Expr) -> exp.Expr:
    inner = exp.Paren(this=tree.copy()) if isinstance(tree, exp.Binary | exp.Unary) else tree.copy()
    return exp.Is(this=inner, expression=exp.Null())


_READERS: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[[Rewriter, Any], _Value]], ...] = (
    (exp.Paren, Rewriter._in_parentheses),
    (exp.Parameter, Rewriter._position),
    (exp.Column, Rewriter._named),
    ((exp.JSONExtract, exp.Bracket), Rewriter._path),
    (exp.Cast, Rewriter._cast),
    (exp.Anonymous, Rewriter._called),
    (tuple(ARITHMETIC), Rewriter._arithmetic),
    (NUMERIC, Rewriter._numeric),
    (OF_TIMES, Rewriter._of_times),
    (COMPARISONS, Rewriter._comparison),
    (exp.SHA2, Rewriter._digest),
    (exp.ArraySize, Rewriter._size),
    (exp.If, Rewriter._if),
    (exp.Case, Rewriter._case),
    (exp.Coalesce, Rewriter._coalesce),
    (LEAVES, Rewriter._leaf),
)
