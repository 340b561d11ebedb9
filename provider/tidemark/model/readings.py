"""A value that a look at store and logs has found, for a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """The value of the gauge `name` of `tidemark.model.metrics`, with its tags."""

    name: str
    value: float
    tags: Mapping[str, str] = field(default_factory=dict)
