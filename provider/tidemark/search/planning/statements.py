"""Statements on search optimization as values."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.search.model.requests import Target

__all__ = ["AddSearch", "DescribeSearch", "DropSearch", "EstimateSearch", "SearchStatement"]


@dataclass(frozen=True)
class AddSearch:
    """ALTER TABLE … ADD SEARCH OPTIMIZATION; no targets: equality on every column that can be searched. `if_exists`:
    a missing table is no error.
    """

    table: str
    targets: tuple[Target, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class DropSearch:
    """ALTER TABLE … DROP SEARCH OPTIMIZATION; no targets: all of it. `if_exists`: a missing table is no error."""

    table: str
    targets: tuple[Target, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class DescribeSearch:
    """DESCRIBE SEARCH OPTIMIZATION ON a table."""

    table: str


@dataclass(frozen=True)
class EstimateSearch:
    """SELECT SYSTEM$ESTIMATE_SEARCH_OPTIMIZATION_COSTS(table [, targets]). `title`: of the column of the answer."""

    table: str
    targets: tuple[Target, ...]
    title: str


SearchStatement = AddSearch | DropSearch | DescribeSearch | EstimateSearch
