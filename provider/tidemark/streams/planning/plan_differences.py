"""The differences between the plan of another attempt and the stored plan, in words: the argument, old → new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from itertools import zip_longest

from tidemark.model.statements import PlannedWrite, WriteAs

__all__ = ["differences"]

ARGUMENTS = {"source": "stream"}  # the field's name where the user's is another
LONGEST_VALUE = 60
BEFORE = 20  # characters that are shown in front of the place where two texts part


def differences(
    stored: Sequence[PlannedWrite],
    requested: Sequence[PlannedWrite],
    *,
    stored_streams: Sequence[str] = (),
    requested_streams: Sequence[str] = (),
) -> str:
    """Each argument that differs with the table that it is about, as `keys of shop.mirror: order_id → id`; "" if none.

    Statements are compared by their places in the plan. Streams are compared without order and case.
    """
    found = []
    if {s.casefold() for s in stored_streams} != {s.casefold() for s in requested_streams}:
        found.append(f"streams: {_shown(sorted(stored_streams))} → {_shown(sorted(requested_streams))}")
    for old, new in zip_longest(_of_the_user(stored), _of_the_user(requested)):
        found += _between(old, new)
    return "; ".join(found)


def _of_the_user(writes: Sequence[PlannedWrite]) -> list[PlannedWrite]:
    """Without the quarantines' own statements, which follow from those that have one."""
    return [write for write in writes if write.write_as is not WriteAs.QUARANTINE]


def _between(old: PlannedWrite | None, new: PlannedWrite | None) -> list[str]:
    if old is None or new is None:
        write, said = (new, "is new") if old is None else (old, "is gone")
        return [] if write is None else [f"the write into {write.target} {said}"]
    found = []
    for field in fields(PlannedWrite):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after:
            found += _changed(ARGUMENTS.get(field.name, field.name), old.target, before, after)
    return found


def _changed(argument: str, target: str, before: object, after: object) -> list[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        return [f"place of {name}: {_shown(before.get(name))} → {_shown(after.get(name))}" for name in names]
    if isinstance(before, str) and isinstance(after, str) and not isinstance(before, Enum):
        before, after = _where_they_part(before, after)
    return [f"{argument} of {target}: {_shown(before)} → {_shown(after)}"]


def _where_they_part(before: str, after: str) -> tuple[str, str]:
    """Both texts; of long ones the part around the first character that differs."""
    if max(len(before), len(after)) <= LONGEST_VALUE:
        return before, after
    same = next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
    start = max(0, (min(len(before), len(after)) if same is None else same) - BEFORE)
    return _part(before, start), _part(after, start)


def _part(text: str, start: int) -> str:
    shown = text[start : start + LONGEST_VALUE]
    return ("…" if start else "") + shown + ("…" if start + LONGEST_VALUE < len(text) else "")


def _shown(value: object) -> str:
    if value is None or value == () or value == []:
        return "none"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value)
    return " ".join(str(value).split())
