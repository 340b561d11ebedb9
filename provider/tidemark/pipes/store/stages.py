"""Stages in the store: each move by name, with its condition."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.errors import StageNotFound
from tidemark.model.codec import to_json
from tidemark.pipes.model.pipes import Stage
from tidemark.pipes.planning.names import key_of
from tidemark.pipes.store import named
from tidemark.pipes.store.file_formats import format_of
from tidemark.pipes.store.schema import stages

__all__ = ["change_stage", "create_stage", "end_stage", "find_stage", "live_stages", "lookup_stage"]


def lookup_stage(connection: sa.Connection, name: str) -> Stage | None:
    """The live stage of that name, or None."""
    row = named.lookup_row(connection, stages, name)
    return None if row is None else _of_row(row)


def find_stage(connection: sa.Connection, name: str) -> Stage:
    """The live stage of that name. Raises StageNotFound."""
    found = lookup_stage(connection, name)
    if found is None:
        raise StageNotFound(stage=name, known=named.known(connection, stages, name))
    return found


def live_stages(connection: sa.Connection) -> tuple[Stage, ...]:
    """All stages, by name."""
    return tuple(map(_of_row, named.live_rows(connection, stages)))


def create_stage(connection: sa.Connection, one: Stage) -> None:
    """Add a stage, whose name must be free."""
    connection.execute(stages.insert().values(uid=one.uid, created_at=one.created_at, **_definition(one)))


def change_stage(connection: sa.Connection, one: Stage) -> bool:
    """Give the stage of that uid another definition or name; True if it lives."""
    return named.change(connection, stages, one.uid, **_definition(one))


def end_stage(connection: sa.Connection, uid: str, *, at: datetime) -> bool:
    """End a stage; True if it lived. Its files stay."""
    return named.end(connection, stages, uid, at=at)


def _definition(one: Stage) -> dict[str, Any]:
    return {
        "name": one.name,
        "folded_name": key_of(one.name),
        "location": one.location,
        "format": None if one.format is None else to_json(one.format),
        "format_name": one.format_name,
        "comment": one.comment,
    }


def _of_row(row: sa.RowMapping) -> Stage:
    return Stage(
        uid=row["uid"],
        name=row["name"],
        location=row["location"],
        format=None if row["format"] is None else format_of(row["format"]),
        format_name=row["format_name"],
        comment=row["comment"],
        created_at=row["created_at"],
    )
