"""The key of an answer, and the life of an answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from tidemark.results.model.answers import Leaf, ReuseRules, StoredAnswer

__all__ = ["digest_of", "evicted", "expiry", "key_of"]

_FORMAT = 2  # of the answer's files and of the key itself


def digest_of(text: str) -> str:
    """The digest of a query's text."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def key_of(text: str, settings: Mapping[str, str], leaves: Sequence[Leaf], today: date | None) -> str:
    """The key of the answer. It covers the text, the settings, and the tables in the order of the text. A table counts
    by id, version and commit, or by its path if the commit is cleaned up. `today`: the date that the query asks for,
    None if it does not.
    """
    read = [(leaf.table_id, leaf.content, leaf.commit or leaf.path) for leaf in leaves]
    parts = [_FORMAT, text, sorted(settings.items()), read, None if today is None else today.isoformat()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def expiry(used_at: datetime, latest_at: datetime, rules: ReuseRules) -> datetime:
    """The end of the life of an answer that was used then."""
    return min(used_at + rules.keep, latest_at)


def evicted(answers: Sequence[StoredAnswer], *, most_bytes: int) -> tuple[StoredAnswer, ...]:
    """The answers to remove until all others fit, the least recently used ones first."""
    total = sum(answer.written.size for answer in answers)
    gone = []
    for answer in sorted(answers, key=lambda one: (one.last_used_at, one.uid)):
        if total <= most_bytes:
            break
        gone.append(answer)
        total -= answer.written.size
    return tuple(gone)
