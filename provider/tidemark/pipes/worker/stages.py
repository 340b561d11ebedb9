"""Stages as users define, change and drop them."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, StageExists
from tidemark.lake.storage import canonical_uri
from tidemark.pipes.model.formats import FileFormat
from tidemark.pipes.model.pipes import Stage
from tidemark.pipes.planning.locations import require_location
from tidemark.pipes.planning.names import key_of
from tidemark.pipes.store import file_formats, stages
from tidemark.pipes.worker.named_objects import NamedObjects

__all__ = ["alter_stage", "create_stage", "drop_stage", "find_stage", "get_stage", "list_stages"]


def create_stage(
    store: ControlStore,
    name: str,
    location: str,
    *,
    format: FileFormat | None = None,
    format_name: str | None = None,
    comment: str | None = None,
    or_replace: bool = False,
    if_not_exists: bool = False,
) -> Stage:
    """The stage of that name on a directory or bucket, which need not exist yet. `format`: its own; `format_name`: a
    named one.

    `if_not_exists` keeps an existing stage as it is. `or_replace` gives it this definition, so a second run changes
    nothing. Raises StageExists, FileFormatNotFound, InvalidArgument.
    """
    key_of(name)
    wanted = Stage(
        uid=store.new_id(),
        name=name.strip(),
        location=_canonical(location),
        format=format,
        format_name=format_name,
        comment=comment,
        created_at=store.clock(),
    )

    return _STAGES.create(store, wanted, or_replace=or_replace, if_not_exists=if_not_exists)


def alter_stage(
    store: ControlStore,
    name: str,
    *,
    location: str | None = None,
    format: FileFormat | None = None,
    format_name: str | None = None,
    comment: str | None = None,
    rename_to: str | None = None,
    if_exists: bool = False,
) -> Stage | None:
    """Change what is given, and keep the rest. A format takes the place of the named one, and the reverse; an empty
    comment removes it. None if the stage does not exist with `if_exists`. A second run changes nothing, but for
    `rename_to`.

    Raises StageNotFound, StageExists for the new name, FileFormatNotFound, InvalidArgument.
    """
    place = None if location is None else _canonical(location)

    def define(connection: sa.Connection, stage: Stage) -> Stage:
        changed = replace(stage, location=place or stage.location)
        if format is not None or format_name is not None:
            changed = replace(changed, format=format, format_name=format_name)
            _require_format(connection, changed)
        return changed

    return _STAGES.alter(store, name, define, comment=comment, rename_to=rename_to, if_exists=if_exists)


def drop_stage(store: ControlStore, name: str, *, if_exists: bool = False) -> Stage | None:
    """End the stage and return what it was. Its files stay, and pipes that read it stop. None if it did not exist with
    `if_exists`. Raises StageNotFound.
    """
    return _STAGES.drop(store, name, if_exists=if_exists)


def find_stage(store: ControlStore, name: str) -> Stage | None:
    """The stage of that name; None if there is none."""
    return _STAGES.found(store, name)


def get_stage(store: ControlStore, name: str) -> Stage:
    """The stage of that name. Raises StageNotFound with similar names."""
    return _STAGES.get(store, name)


def list_stages(store: ControlStore, like: str | None = None) -> tuple[Stage, ...]:
    """All stages by name. `like`: a pattern of LIKE for the last part of the name."""
    return _STAGES.listed(store, like)


def _canonical(location: str) -> str:
    require_location(location)
    return canonical_uri(location)


def _require_format(connection: sa.Connection, stage: Stage) -> None:
    if stage.format is not None and stage.format_name is not None:
        problem = "give the options of a format or the name of one, not both"
        raise InvalidArgument(argument="format_name", value=stage.format_name, problem=problem)
    if stage.format_name is not None:
        file_formats.find_file_format(connection, stage.format_name)


_STAGES = NamedObjects[Stage](
    lookup=stages.lookup_stage,
    find=stages.find_stage,
    live=stages.live_stages,
    insert=stages.create_stage,
    change=stages.change_stage,
    end=stages.end_stage,
    taken=lambda name: StageExists(stage=name),
    check=_require_format,
)
