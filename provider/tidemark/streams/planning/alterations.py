"""Which table properties a VACUUM plan changes in which order, so that a job may die between any two of them (R88)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tidemark.model.foreign_json import foreign_object
from tidemark.streams.planning.staleness import FILE_RETENTION, OWN_RETENTION

__all__ = ["Settings", "alterations", "differing"]

Settings = Mapping[str, str | None]  # property → value; None: not set


def alterations(configuration: Mapping[str, str], settings: Settings) -> tuple[Settings, ...]:
    """The commits that lead to `settings`, each only sets or only unsets: one wherever Delta has a statement for it.

    A property that already has its value is left out. The note of the earlier values is set no later than the
    properties that it notes. It is removed only when all of them are put back. So a table that is found in between can
    be put back. Files come before the log, which may never be kept for less time than they are.
    """
    wanted = {name: value for name, value in settings.items() if configuration.get(name) != value}
    plain = {name: value for name, value in wanted.items() if name != OWN_RETENTION}
    new: dict[str, str | None] = {name: value for name, value in plain.items() if value is not None}
    old: dict[str, str | None] = {name: None for name, value in plain.items() if value is None}
    steps: list[dict[str, str | None]] = [step for step in (new, old) if step]
    if FILE_RETENTION in old:
        steps.reverse()
    return tuple(steps if OWN_RETENTION not in wanted else _noted(steps, configuration, wanted[OWN_RETENTION]))


def differing(configuration: Mapping[str, str], previous: Settings, settings: Settings) -> tuple[str, ...]:
    """The properties that are neither as in `previous` nor as in `settings`: somebody has set them since."""
    names = sorted({*previous, *settings})
    return tuple(
        name
        for name in names
        if configuration.get(name) not in {previous.get(name), settings.get(name, previous.get(name))}
    )


def _noted(
    steps: list[dict[str, str | None]], configuration: Mapping[str, str], note: str | None
) -> list[dict[str, str | None]]:
    """The note in the last step, or in one of its own. An earlier step that sets something gets a note that holds for
    both the old and the new.
    """
    if len(steps) == 2 and note is not None and _sets(steps[0]):
        steps[0][OWN_RETENTION] = _of_both(configuration.get(OWN_RETENTION), note)
        return [*steps, {OWN_RETENTION: note}] if steps[0][OWN_RETENTION] != note else steps
    if steps and _sets(steps[-1]) is (note is not None):
        steps[-1][OWN_RETENTION] = note
        return steps
    return [*steps, {OWN_RETENTION: note}]


def _sets(step: Settings) -> bool:
    return any(value is not None for value in step.values())


def _of_both(before: str | None, after: str) -> str:
    """The note for both: a property that is being put back is still noted as it was."""
    return json.dumps({**foreign_object(before), **foreign_object(after)}, sort_keys=True)
