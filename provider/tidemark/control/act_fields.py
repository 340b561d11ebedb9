"""Fields of acts: what a person chooses for an act, validated before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from tidemark.errors import ActFieldsInvalid

__all__ = ["ActField", "Choice", "FieldType", "Value", "Values", "only", "values_of"]

Value = str | bool | tuple[str, ...]
Values = Mapping[str, Value]


class FieldType(StrEnum):
    """The type of a field, by which a form draws it."""

    TEXT = "text"
    FLAG = "flag"
    NAMES = "names"  # any number of names
    CHOICE = "choice"  # one of the choices that the object has


@dataclass(frozen=True)
class Choice:
    """A value that may be chosen. `words`: how a form shows it."""

    value: str
    words: str


ChoicesOf = Callable[[sa.Connection, str], Sequence[Choice]]


@dataclass(frozen=True)
class ActField:
    """A field of an act.

    `label`: its name in a form. `help`: a sentence below it. `option`: the option of the act's command that takes the
    same. `default`: the value of a text or choice that is left out. `choices`: those that an object has, by its uid.
    """

    name: str
    label: str
    type: FieldType
    option: str
    help: str = ""
    required: bool = False
    default: str = ""
    choices: ChoicesOf | None = None

    def choices_of(self, connection: sa.Connection, uid: str) -> tuple[Choice, ...]:
        """The choices of that object; none for another type of field."""
        return () if self.choices is None else tuple(self.choices(connection, uid))


def only(*choices: Choice) -> ChoicesOf:
    """The same choices for every object."""
    return lambda _connection, _uid: choices


def values_of(
    connection: sa.Connection, act: str, fields: Sequence[ActField], uid: str, given: Mapping[str, object]
) -> Values:
    """A value for each field. Raises ActFieldsInvalid, which names each field that is wrong."""
    problems = {name: "the act has no such field" for name in given if name not in {field.name for field in fields}}
    found: dict[str, Value] = {}
    for field in fields:
        value = _typed(field, given.get(field.name))
        problem = "its type is another" if value is None else _problem(connection, field, uid, value)
        if problem is not None:
            problems[field.name] = problem
        elif value is not None:
            found[field.name] = value
    if problems:
        words = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        raise ActFieldsInvalid(act=act, words=words, problems=problems)
    return found


def _typed(field: ActField, given: object) -> Value | None:
    """None for a value of another type."""
    if field.type is FieldType.FLAG:
        return given if isinstance(given, bool) else False if given is None else None
    if field.type is FieldType.NAMES:
        if given is None:
            return ()
        is_names = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
        return tuple(dict.fromkeys(one.strip() for one in given if one.strip())) if is_names else None  # type: ignore[attr-defined]
    if given is None:
        return field.default
    return given.strip() or field.default if isinstance(given, str) else None


def _problem(connection: sa.Connection, field: ActField, uid: str, value: Value) -> str | None:
    if field.required and value in ("", ()):
        return "it is required"
    if field.type is FieldType.CHOICE and value:
        return None if value in {one.value for one in field.choices_of(connection, uid)} else "it is not offered now"
    return None
