"""Whether the keys of a watched table remain the same texts: partitions are ranges of the texts' hashes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tidemark.changes.planning import source_schema
from tidemark.model.table_log import Metadata

__all__ = ["rewritten_key"]

_NUMBER = re.compile(r"byte|short|integer|long|decimal\(.*\)")  # digits alone, however wide


def rewritten_key(keys: Sequence[str], before: Metadata, after: Metadata) -> str | None:
    """The change of a key column whose values have other texts in records under `after` than under `before`; None
    without one. A key would change its partition with its text. A column that one of them lacks is none.
    """
    old, new = (
        {field.name.casefold(): field.form["type"] for field in source_schema.fields(m)} for m in (before, after)
    )
    for key in keys:
        was, now = old.get(key.casefold()), new.get(key.casefold())
        if was is not None and now is not None and _written(was) != _written(now):
            return f"its key column {key} has become {_shown(now)}, and was {_shown(was)}"
    return None


def _written(form: object) -> str:
    text = _shown(form)
    return "number" if _NUMBER.fullmatch(text) else text


def _shown(form: object) -> str:
    return form if isinstance(form, str) else json.dumps(form, sort_keys=True)
