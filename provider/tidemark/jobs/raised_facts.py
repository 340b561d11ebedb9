"""Errors that a query raises with facts, which are found again in Spark's message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["facts_in", "raised_with"]


def raised_with(sign: str, facts: Column, words: str) -> Column:
    """A column that fails the query with the struct `facts` as JSON after `sign`, and then with `words`."""
    return F.raise_error(F.concat(F.lit(f"{sign} "), F.to_json(facts), F.lit(words)))


def facts_in(sign: str, text: str) -> Mapping[str, Any] | None:
    """The facts after `sign` in Spark's message, or None if it has none."""
    _, found, rest = text.partition(f"{sign} ")
    if not found:
        return None
    try:
        facts, _ = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return None
    known: Mapping[str, Any] = facts
    return known
