"""The setting that names more of the worker's variables for drivers."""

from __future__ import annotations

import re
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.model.driver_environment import NEVER
from tidemark.model.foreign_json import parsed

__all__ = ["names_from"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")


def names_from(given: Any) -> tuple[str, ...]:
    """The names in the setting `driver_environment`: a list, its JSON, or text with commas or white space.

    Raises InvalidArgument if it is no list, or has a name that is none or may never pass.
    """
    names = _listed(given)
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            shown = str(name).partition("=")[0]
            raise _refused(shown, "each must be a name of a variable, or the beginning of some followed by *")
        if NEVER.fullmatch(name.rstrip("*")):
            raise _refused(name, "variables of Airflow and Tidemark never pass, since they have connections and keys")
    return tuple(names)


def _listed(given: Any) -> list[Any]:
    if isinstance(given, str) and given.lstrip()[:1] in ("[", "{", '"'):
        try:
            given = parsed(given)
        except ValueError:
            given = None
    if isinstance(given, str):
        return given.replace(",", " ").split()
    if not isinstance(given, list | tuple):
        raise _refused("(not shown)", 'it must be a list of names: ["SHOP_URL"] or SHOP_URL, TEAM_*')
    return list(given)


def _refused(value: str, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="driver_environment", value=value, problem=problem)
