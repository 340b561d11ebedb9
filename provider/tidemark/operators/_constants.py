"""What a DAG file says in so many words is checked when it is parsed, and so shows as an import error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.model.transactions import SchemaEvolution, WriteAs
from tidemark.operators._plans import WriteRequest, planned_writes

__all__ = ["check_bounds", "check_constants", "check_write", "is_constant"]

_TEMPLATED = ("{{", "{%", "{#")
_OF_WRITES = ("stream", "target", "write_as", "keys", "sql", "tables", "schema_evolution", "quarantine")


def is_constant(value: object, file_ends: Sequence[str] = ()) -> bool:
    """Whether the value is what the task will get: no template, no file of one, no other task's result."""
    if isinstance(value, str):
        return not any(mark in value for mark in _TEMPLATED) and not value.endswith(tuple(file_ends))
    if isinstance(value, Mapping):
        return all(is_constant(one, file_ends) for one in (*value, *value.values()))
    if isinstance(value, list | tuple):
        return all(is_constant(one, file_ends) for one in value)
    return value is None or isinstance(value, int | float | datetime) or inspect.isfunction(value)


def check_constants(operator: Any, **readers: Callable[[str, Any], object]) -> None:
    """Have each constant argument read by its reader, as `execute` will. Raises what the reader raises."""
    for argument, read in readers.items():
        value = getattr(operator, argument)
        if is_constant(value, operator.template_ext):
            read(argument, value)


def check_bounds(operator: Any) -> None:
    """`max_commits`, `max_rows` and `until`, as far as they are constants. Raises InvalidArgument."""
    from tidemark.operators._bounds import bound_of

    given = {name: getattr(operator, name, None) for name in ("max_commits", "max_rows", "until")}
    bound_of(**{name: value for name, value in given.items() if is_constant(value)})


def check_write(operator: Any) -> None:
    """The arguments of a write, as far as they are constants; no table is looked at, and no SQL is read.

    A value that is not known yet counts as one that fits. Raises InvalidArgument.
    """
    ends = operator.template_ext
    given = {name: getattr(operator, name) for name in _OF_WRITES}
    known = {name: value for name, value in given.items() if is_constant(value, ends)}
    if "write_as" not in known:
        return
    write_as = known["write_as"] if isinstance(known["write_as"], str) else repr(known["write_as"])
    request = WriteRequest.parse({**_fitting(write_as), **known, **_given_by_group(known), "write_as": write_as})
    if write_as == WriteAs.SQL:
        _check_sql(request)
    else:
        planned_writes(request, str)


def _fitting(write_as: str) -> Mapping[str, Any]:
    """What stands for values that are not known yet."""
    return {
        "stream": "stream",
        "target": "target",
        "keys": "key" if write_as == WriteAs.MERGE else (),
        "sql": "statement" if write_as == WriteAs.SQL else None,
        "tables": (),
        "schema_evolution": SchemaEvolution.FAIL,
        "quarantine": None,
    }


def _given_by_group(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """A writer in a group may leave its stream to the group."""
    return {"stream": "stream"} if known.get("stream", "") is None else {}


def _check_sql(request: WriteRequest) -> None:
    """Without the statement itself: that is read where the tables are."""
    if not request.sql:
        raise InvalidArgument(argument="sql", value=request.sql, problem="write_as='sql' needs a statement")
    if len(request.targets) > 1:
        problem = "a statement writes one table"
        raise InvalidArgument(argument="target", value=list(request.targets), problem=problem)
    if request.tables:
        problem = "only a function needs its tables named"
        raise InvalidArgument(argument="tables", value=list(request.tables), problem=problem)
    if request.schema_evolution not in tuple(SchemaEvolution):
        problem = "it must be 'fail' or 'add'"
        raise InvalidArgument(argument="schema_evolution", value=request.schema_evolution, problem=problem)
