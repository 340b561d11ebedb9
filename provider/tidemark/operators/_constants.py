"""Constants of a DAG file are checked when it is parsed, and so show as an import error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.model.statements import SchemaEvolution, WriteAs
from tidemark.operators._plans import (
    MODES,
    OF_TARGETS,
    WriteRequest,
    filling,
    parsed_sql,
    planned_writes,
    require_all_read,
    require_targets,
    streams_of,
    write_requests,
)

__all__ = [
    "check_bounds",
    "check_constants",
    "check_options",
    "check_targets",
    "check_write",
    "check_writes",
    "is_constant",
]

_TEMPLATED = ("{{", "{%", "{#")
_OF_WRITES = ("stream", *OF_TARGETS)


def is_constant(value: object, file_ends: Sequence[str] = ()) -> bool:
    """Whether the value is what the task will get: no template, no file of one, no other task's result."""
    if isinstance(value, str):
        return not any(mark in value for mark in _TEMPLATED) and not value.endswith(tuple(file_ends))
    if isinstance(value, Mapping):
        return all(is_constant(one, file_ends) for one in (*value, *value.values()))
    if isinstance(value, list | tuple):
        return all(is_constant(one, file_ends) for one in value)
    return value is None or isinstance(value, int | float | datetime | timedelta) or inspect.isfunction(value)


def check_constants(operator: Any, **readers: Callable[[str, Any], object]) -> None:
    """Have each constant argument read by its reader, as `execute` will. Raises what the reader raises."""
    for argument, read in readers.items():
        value = getattr(operator, argument)
        if is_constant(value, operator.template_ext):
            read(argument, value)


def check_options(operator: Any, read: Callable[[str, Any], object]) -> None:
    """Have those of the `options` read that are constants. Raises what the reader raises."""
    given, ends = operator.options, operator.template_ext
    if isinstance(given, Mapping):
        given = {name: value for name, value in given.items() if is_constant([name, value], ends)}
    if is_constant(given, ends):
        read("options", given)


def check_bounds(operator: Any) -> None:
    """Check `max_commits`, `max_rows`, `max_bytes` and `until` if they are constants. Raises InvalidArgument."""
    from tidemark.operators._bounds import bound_of, bounds_given

    bound_of(**{name: value for name, value in bounds_given(operator).items() if is_constant(value)})


def check_write(operator: Any) -> None:
    """Check the arguments of a write that are constants; no table is read.

    A value that is not known yet counts as one that fits. Raises InvalidArgument, StatementRefused.
    """
    _check_request({name: getattr(operator, name) for name in _OF_WRITES}, operator.template_ext)


def check_targets(operator: Any) -> None:
    """The arguments of an operator that writes one target, or several. Raises InvalidArgument, StatementRefused."""
    targets = operator.targets
    if targets is None:
        if operator.write_as is None:
            raise InvalidArgument(argument="write_as", value=None, problem=f"it must be {MODES}; or give targets")
        given = {name: getattr(operator, name) for name in _OF_WRITES}
        if isinstance(given["sql"], str) and is_constant(given["sql"], operator.template_ext):
            given["sql"] = filling(given["sql"])
        _check_request(given, operator.template_ext)
    elif isinstance(targets, list | tuple):
        require_targets(targets, vars(operator))
        for target in targets:
            given = {"stream": operator.stream, **target}
            _check_request({name: given.get(name) for name in _OF_WRITES}, operator.template_ext)
    elif is_constant(targets):
        require_targets(targets, vars(operator))
    given = {name: getattr(operator, name) for name in ("targets", *_OF_WRITES)}
    if is_constant(given, operator.template_ext):
        requests = write_requests(given)
        require_all_read(requests, streams_of(requests))


def check_writes(argument: str, writes: Any) -> None:
    """Each one as `check_write` does. Raises InvalidArgument, StatementRefused."""
    if not isinstance(writes, list | tuple) or not all(isinstance(given, Mapping) for given in writes):
        problem = "give the arguments of each write, by name"
        raise InvalidArgument(argument=argument, value=writes, problem=problem)
    for given in writes:
        _check_request({name: given.get(name) for name in _OF_WRITES})


def _check_request(given: Mapping[str, Any], ends: Sequence[str] = ()) -> None:
    known = {name: value for name, value in given.items() if is_constant(value, ends)}
    if "write_as" not in known:
        return
    write_as = known["write_as"] if isinstance(known["write_as"], str) else repr(known["write_as"])
    request = WriteRequest.parse({**_fitting(write_as), **known, **_given_by_group(known), "write_as": write_as})
    if write_as == WriteAs.SQL:
        _check_sql(request, known)
    else:
        planned_writes(request, str)


def _fitting(write_as: str) -> Mapping[str, Any]:
    """A placeholder for values that are not known yet."""
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


def _check_sql(request: WriteRequest, known: Mapping[str, Any]) -> None:
    """The statement is parsed if it is a constant of the file. Its target is resolved later, beside the tables."""
    if "sql" in known:
        parsed_sql(request, request.streams if known.get("stream") else None)
    if len(request.targets) > 1:
        problem = "a statement writes one table"
        raise InvalidArgument(argument="target", value=list(request.targets), problem=problem)
    if request.tables:
        problem = "only a function needs its tables named"
        raise InvalidArgument(argument="tables", value=list(request.tables), problem=problem)
    if request.schema_evolution not in tuple(SchemaEvolution):
        problem = "it must be 'fail' or 'add'"
        raise InvalidArgument(argument="schema_evolution", value=request.schema_evolution, problem=problem)
