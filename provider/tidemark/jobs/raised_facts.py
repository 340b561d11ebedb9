"""Errors that a query raises with facts, so that they are known again in what Spark says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["facts_in", "raised_with"]


def raised_with(sign: str, facts: Column, words: str) -> Column:
    """Fails the query with the struct `facts` as JSON behind `sign`, and then in words."""
    return F.raise_error(F.concat(F.lit(f"{sign} "), F.to_json(facts), F.lit(words)))


def facts_in(sign: str, text: str) -> Mapping[str, Any] | None:
    """What was raised with `sign`, if it is in what Spark says; else None."""
    _, found, rest = text.partition(f"{sign} ")
    if not found:
        return None
    try:
        facts, _ = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return None
    known: Mapping[str, Any] = facts
    return known
