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
from tidemark.pipes.planning.names import key_of, listed, require_one_way
from tidemark.pipes.store import file_formats, stages

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
    require_one_way(or_replace=or_replace, if_not_exists=if_not_exists)
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

    def create(connection: sa.Connection) -> Stage:
        existing = stages.lookup_stage(connection, name)
        if existing is not None and if_not_exists:
            return existing
        if existing is not None and not or_replace:
            raise StageExists(stage=existing.name)
        _require_format(connection, wanted)
        if existing is None:
            stages.create_stage(connection, wanted)
            return wanted
        return _changed(connection, replace(wanted, uid=existing.uid, created_at=existing.created_at))

    return store.write(create)


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

    def alter(connection: sa.Connection) -> Stage | None:
        stage = stages.lookup_stage(connection, name) if if_exists else stages.find_stage(connection, name)
        if stage is None:
            return None
        changed = replace(stage, location=place or stage.location)
        if format is not None or format_name is not None:
            changed = replace(changed, format=format, format_name=format_name)
            _require_format(connection, changed)
        if comment is not None:
            changed = replace(changed, comment=comment or None)
        if rename_to is not None:
            _require_free(connection, rename_to, stage)
            changed = replace(changed, name=rename_to.strip())
        return _changed(connection, changed)

    return store.write(alter)


def drop_stage(store: ControlStore, name: str, *, if_exists: bool = False) -> Stage | None:
    """End the stage and return what it was. Its files stay, and pipes that read it stop. None if it did not exist with
    `if_exists`. Raises StageNotFound.
    """

    def drop(connection: sa.Connection) -> Stage | None:
        stage = stages.lookup_stage(connection, name) if if_exists else stages.find_stage(connection, name)
        if stage is not None:
            stages.end_stage(connection, stage.uid, at=store.clock())
        return stage

    return store.write(drop)


def find_stage(store: ControlStore, name: str) -> Stage | None:
    """The stage of that name; None if there is none."""
    return store.read(lambda connection: stages.lookup_stage(connection, name))


def get_stage(store: ControlStore, name: str) -> Stage:
    """The stage of that name. Raises StageNotFound with similar names."""
    return store.read(lambda connection: stages.find_stage(connection, name))


def list_stages(store: ControlStore, like: str | None = None) -> tuple[Stage, ...]:
    """All stages by name. `like`: a pattern of LIKE for the last part of the name."""
    return listed(store.read(stages.live_stages), like)


def _changed(connection: sa.Connection, stage: Stage) -> Stage:
    stages.change_stage(connection, stage)
    return stage


def _canonical(location: str) -> str:
    require_location(location)
    return canonical_uri(location)


def _require_format(connection: sa.Connection, stage: Stage) -> None:
    if stage.format is not None and stage.format_name is not None:
        problem = "give the options of a format or the name of one, not both"
        raise InvalidArgument(argument="format_name", value=stage.format_name, problem=problem)
    if stage.format_name is not None:
        file_formats.find_file_format(connection, stage.format_name)


def _require_free(connection: sa.Connection, name: str, stage: Stage) -> None:
    other = stages.lookup_stage(connection, name)
    if other is not None and other.uid != stage.uid:
        raise StageExists(stage=other.name)
