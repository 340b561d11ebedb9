"""The reason for a miss, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tidemark.results.model.answers import Leaf, Miss, StoredAnswer, Why
from tidemark.results.planning.settings import difference

__all__ = ["why_missed"]

_ENDED = {
    Why.EXPIRED: "the answer has expired",
    Why.EVICTED: "the answer was evicted, since others were used later",
    Why.FORGOTTEN: "the answer was removed by hand",
    Why.LOST: "the files of the answer were lost",
    Why.OFF: "another run has replaced the answer",
}


def why_missed(
    same_text: Sequence[StoredAnswer], key: str, settings: Mapping[str, str], leaves: Sequence[Leaf], now: datetime
) -> Miss:
    """The reason, from answers of the same text; the newest is first."""
    of_key = next((answer for answer in same_text if answer.key == key), None)
    if of_key is not None:
        why = of_key.ended_as or Why.EXPIRED
        at = of_key.ended_at or min(of_key.expires_at, now)
        return Miss(why if why is not Why.OFF else Why.FORGOTTEN, f"{_ENDED[why]} at {at.isoformat()}")
    if not same_text:
        return Miss(Why.FIRST, "no answer of this text is kept")
    newest = same_text[0]
    changed = _changes(newest.tables, leaves)
    others = difference(newest.settings, settings)
    if others and not changed:
        return Miss(Why.CHANGED, f"the answer is of another session: {', '.join(others)}")
    text = "; ".join(changed) or "the answer is of another day"
    return Miss(Why.CHANGED, text)


def _changes(kept: Sequence[Leaf], now: Sequence[Leaf]) -> list[str]:
    if [leaf.name for leaf in kept] != [leaf.name for leaf in now]:
        return ["its tables have other names"]
    changes = []
    for before, after in zip(kept, now, strict=True):
        if before.table_id != after.table_id:
            changes.append(f"{after.name} is another table, at {after.path}")
        elif before.content != after.content:
            changes.append(f"{after.name} has changed: version {after.version}, and the answer is of {before.version}")
        elif None not in (before.commit, after.commit) and before.commit != after.commit:
            changes.append(f"{after.name} has another version {after.content}: a copy of the table, at {after.path}")
    return changes
