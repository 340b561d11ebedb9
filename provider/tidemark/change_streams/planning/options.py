"""OPTIONS of a change stream: what may be set, and how it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from tidemark.change_streams.model.change_streams import ChangeStreamOptions, ValueCaptureType
from tidemark.errors import ChangeStreamRefused

__all__ = ["OPTIONS", "changed_options", "parse_options", "shown_options"]

SHORTEST, LONGEST = timedelta(days=1), timedelta(days=30)
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1), "s": timedelta(seconds=1)}
_DURATION = re.compile(r"(\d{1,9})([smhd])")
_FLAGS = ("exclude_ttl_deletes", "exclude_insert", "exclude_update", "exclude_delete", "allow_txn_exclusion")

OPTIONS: Mapping[str, str] = MappingProxyType(
    {"retention_period": "STRING", "value_capture_type": "STRING", **dict.fromkeys(_FLAGS, "BOOL")}
)
"""The name of each option, and the type that the catalog view says of it."""


def parse_options(stream: str, given: Mapping[str, Any]) -> ChangeStreamOptions:
    """The options of a new stream; names know no case, and None is the default. Raises ChangeStreamRefused."""
    return changed_options(stream, ChangeStreamOptions(), given)


def changed_options(stream: str, options: ChangeStreamOptions, given: Mapping[str, Any]) -> ChangeStreamOptions:
    """The options after those that are given are set; None resets one to its default.

    `retention_period`: '<n>{s,m,h,d}' or a timedelta, from 1 to 30 days. `value_capture_type`: one of ValueCaptureType.
    The others are True or False. Raises ChangeStreamRefused.
    """
    default = ChangeStreamOptions()
    names: dict[str, Any] = {}
    for name, value in given.items():
        option = name.lower()
        if option not in OPTIONS:
            raise _refused(stream, f"it has no option {name!r}; there are {', '.join(OPTIONS)}")
        if option in names:
            raise _refused(stream, f"option {option} is given twice")
        names[option] = value
    fields = {
        _FIELDS.get(name, name): getattr(default, _FIELDS.get(name, name))
        if value is None
        else _READ[name](stream, value)
        for name, value in names.items()
    }
    kept = [name for name in options.given if name not in names]
    set_ = [name for name, value in names.items() if value is not None]
    order = list(OPTIONS)
    return replace(options, **fields, given=tuple(sorted((*kept, *set_), key=order.index)))


def shown_options(options: ChangeStreamOptions) -> dict[str, str]:
    """The options that were set, as text: a duration in the largest unit that divides it."""
    return {name: _shown(getattr(options, _FIELDS.get(name, name))) for name in options.given}


def _shown(value: timedelta | bool | str) -> str:
    if isinstance(value, timedelta):
        unit = next(unit for unit, length in _UNITS.items() if value % length == timedelta(0))
        return f"{value // _UNITS[unit]}{unit}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _retention(stream: str, value: object) -> timedelta:
    found = value if isinstance(value, timedelta) else _duration(value)
    if found is None or found % _UNITS["s"] or not SHORTEST <= found <= LONGEST:
        problem = f"retention_period={value!r}: a text such as '36h' or '7d' (units s, m, h, d), from 1 to 30 days"
        raise _refused(stream, problem)
    return found


def _duration(value: object) -> timedelta | None:
    read = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return None if read is None else int(read[1]) * _UNITS[read[2]]


def _capture_type(stream: str, value: object) -> ValueCaptureType:
    try:
        return ValueCaptureType(str(value))
    except ValueError:
        problem = f"value_capture_type={value!r}: one of {', '.join(ValueCaptureType)}"
        raise _refused(stream, problem) from None


def _flag(name: str) -> Callable[[str, object], bool]:
    def read(stream: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise _refused(stream, f"{name}={value!r}: true, false or NULL")
        return value

    return read


def _refused(stream: str, problem: str) -> ChangeStreamRefused:
    return ChangeStreamRefused(stream=stream, problem=problem)


_FIELDS = {"retention_period": "retention"}  # where the option and the field have another name
_READ: Mapping[str, Callable[[str, object], Any]] = {
    "retention_period": _retention,
    "value_capture_type": _capture_type,
    **{name: _flag(name) for name in _FLAGS},
}
