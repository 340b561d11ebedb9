"""Paths in a transformation, as in $1:a.b[0]."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from tidemark.pipes.planning.transform_types import Refused, call

__all__ = ["elements", "path_step", "position_of", "shown", "steps_of"]

_PATH = re.compile(r"([^.\[\]]+)(?![^\[]*\])|\[(\d+)\]")


def steps_of(node: exp.Expr) -> tuple[exp.Expr, list[str | int]]:
    """The innermost value, and the path in it, which may be empty."""
    steps: list[str | int] = []
    while True:
        if isinstance(node, exp.JSONExtract) and isinstance(node.expression, exp.JSONPath):
            found: list[Any] = [one.this for one in node.expression.expressions[1:]]
        elif isinstance(node, exp.Bracket) and len(node.expressions) == 1:
            found = [_constant(node.expressions[0])]
        elif isinstance(node, exp.Anonymous) and node.name.upper() in ("TM_GET", "TM_GET_PATH"):
            found = _called_steps(node)
        else:
            return node, steps
        if not all(isinstance(one, str | int) for one in found):
            raise Refused("a path has constant steps, as in $1:a.b[0]")
        steps = [*found, *steps]
        node = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this


def _constant(node: exp.Expr) -> str | int | None:
    if not isinstance(node, exp.Literal):
        return None
    return str(node.name) if node.is_string else int(node.name)


def position_of(node: exp.Expr) -> int | None:
    """The n of `$n` or `alias.$n`; None for anything else."""
    inner = node.this if isinstance(node, exp.Column) else node
    found = inner.this.name if isinstance(inner, exp.Parameter) and isinstance(inner.this, exp.Expr) else ""
    return int(found) if found.isdigit() else None


def path_step(step: str | int) -> str:
    """A step in a path of Spark's variants. Raises Refused."""
    if isinstance(step, int):
        return f"[{step}]"
    if '"' in step and "'" in step:
        raise Refused(f"the name {step!r} has quotes of both kinds, which no path in Spark can have")
    quote = "'" if '"' in step else '"'
    return f".{step}" if step.isidentifier() and step.isascii() else f"[{quote}{step}{quote}]"


def shown(steps: list[str | int]) -> str:
    """The path as users write it."""
    names = [f"[{one}]" if isinstance(one, int) else f".{one if one.isidentifier() else repr(one)}" for one in steps]
    text = "".join(names)
    return f":{text[1:]}" if text.startswith(".") else text


def _called_steps(node: exp.Anonymous) -> list[str | int | None]:
    """The steps of GET(value, step) and GET_PATH(value, 'path')."""
    step = _constant(node.expressions[1]) if len(node.expressions) == 2 else None
    if node.name.upper() == "TM_GET" or not isinstance(step, str):
        return [step]
    return [int(number) if number else name for name, number in _PATH.findall(step)]


def elements(tree: exp.Expr, steps: list[str | int]) -> exp.Expr:
    """A part of a struct or an array; NULL beyond the end of an array."""
    for step in steps:
        if isinstance(step, int):
            tree = call("get", tree, exp.Literal.number(step))
        else:
            tree = exp.Dot(this=tree, expression=exp.to_identifier(step, quoted=True))
    return tree
