"""Statements on change streams as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.change_streams.planning.definition import WatchRequest
from tidemark.sql.text import SqlName

__all__ = [
    "ChangeStreamStatement",
    "CreateChangeStream",
    "DropChangeStream",
    "OptionValue",
    "SetChangeStreamFor",
    "SetChangeStreamOptions",
    "SuspendChangeStream",
]

OptionValue = str | bool | int | None


@dataclass(frozen=True)
class CreateChangeStream:
    """CREATE CHANGE STREAM. Without FOR it watches nothing: it is suspended."""

    name: SqlName
    watch: WatchRequest
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True)
class SetChangeStreamFor:
    """ALTER CHANGE STREAM … SET FOR."""

    name: SqlName
    watch: WatchRequest


@dataclass(frozen=True)
class SetChangeStreamOptions:
    """ALTER CHANGE STREAM … SET OPTIONS; NULL puts one back to its default."""

    name: SqlName
    options: Mapping[str, OptionValue]


@dataclass(frozen=True)
class SuspendChangeStream:
    """ALTER CHANGE STREAM … DROP FOR ALL."""

    name: SqlName


@dataclass(frozen=True)
class DropChangeStream:
    """DROP CHANGE STREAM."""

    name: SqlName
    if_exists: bool = False


ChangeStreamStatement = (
    CreateChangeStream | SetChangeStreamFor | SetChangeStreamOptions | SuspendChangeStream | DropChangeStream
)
