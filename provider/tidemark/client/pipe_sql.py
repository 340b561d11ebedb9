"""Statements of loads, stages, file formats and pipes in `lake.sql`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from tidemark.client import pipe_answers as answers
from tidemark.client.copying import run_copy
from tidemark.client.sql_answers import status_answer
from tidemark.errors import NotYetSupported, SqlCompilationError, StageLocationMissing
from tidemark.lake.file_listing import FileListing
from tidemark.lake.file_names import FileFilter
from tidemark.pipes.model.files import FileSource
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.planning import statements as said
from tidemark.pipes.planning.names import listed, name_parts
from tidemark.pipes.planning.sql import parse_pipe_sql
from tidemark.pipes.planning.statements import FormatRef, ObjectKind
from tidemark.pipes.worker import definitions, file_formats, stages
from tidemark.pipes.worker.needs import copy_of
from tidemark.pipes.worker.resolve import place_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.client.pipes import PipesOfALake

__all__ = ["run_pipe_sql"]

_DONE = "Statement executed successfully."
_CREATED = {ObjectKind.STAGE: "Stage area", ObjectKind.FILE_FORMAT: "File format", ObjectKind.PIPE: "Pipe"}


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_One = TypeVar("_One", bound=_Named)


def run_pipe_sql(lake: PipesOfALake, context: ClientContext, text: str) -> DataFrame | None:
    """The answer to a statement of loads, stages, file formats or pipes; None for any other. Raises what `Lake.sql`
    says.
    """
    statement = parse_pipe_sql(text)
    match statement:
        case None:
            return None
        case said.CopyInto():
            return run_copy(context, statement)
        case said.RefreshPipe():
            return _refreshed(lake, context, statement)
        case said.ShowObjects():
            return _shown(context, statement)
        case said.Describe():
            return _described(context, statement)
        case said.ListStage():
            return _listed(context, statement)
        case said.PipeStatus():
            shown = json.dumps(lake.pipe_status(statement.name))
            return context.spark.createDataFrame([(shown,)], f"`SYSTEM$PIPE_STATUS('{_tick(statement.name)}')` STRING")
        case _:
            return status_answer(context.spark, _changed(lake, context, statement))


def _changed(lake: PipesOfALake, context: ClientContext, statement: said.PipeStatement) -> str:
    """The status of a statement that changes an object."""
    match statement:
        case said.CreateStage() | said.CreateFileFormat() | said.CreatePipe():
            return _created(lake, context, statement)
        case said.AlterStage():
            _alter_stage(context, statement)
        case said.AlterFileFormat():
            file_formats.alter_file_format(
                context.store,
                statement.name,
                options=statement.options,
                comment=statement.comment,
                if_exists=statement.if_exists,
            )
        case said.RenameObject():
            rename = stages.alter_stage if statement.kind is ObjectKind.STAGE else file_formats.alter_file_format
            rename(context.store, statement.name, rename_to=statement.new_name, if_exists=statement.if_exists)
        case said.AlterPipe():
            _alter_pipe(lake, context, statement)
        case said.DropObject():
            return _dropped(context, statement)
        case said.PipeForceResume():
            lake.resume_pipe(statement.name, force=statement.stale_too)
            return f"Pipe {statement.name} successfully resumed."
    return _DONE


def _created(
    lake: PipesOfALake, context: ClientContext, create: said.CreateStage | said.CreateFileFormat | said.CreatePipe
) -> str:
    ways = {"or_replace": create.or_replace, "if_not_exists": create.if_not_exists}
    store = context.store
    match create:
        case said.CreateStage():
            kind, existed = ObjectKind.STAGE, stages.find_stage(store, create.name) is not None
            ref = create.format or FormatRef()
            form = {"format": ref.format, "format_name": ref.name}
            stages.create_stage(store, create.name, create.url, comment=create.comment, **form, **ways)  # type: ignore[arg-type]
        case said.CreateFileFormat():
            kind, existed = ObjectKind.FILE_FORMAT, file_formats.find_file_format(store, create.name) is not None
            file_formats.create_file_format(store, create.name, create.format, comment=create.comment, **ways)
        case said.CreatePipe():
            kind, existed = ObjectKind.PIPE, definitions.find_pipe(store, create.name) is not None
            lake.create_pipe(
                create.name,
                create.copy_statement,
                auto_ingest=create.auto_ingest,
                notification_channel=create.notification_channel,
                comment=create.comment,
                **ways,
            )
    if existed and create.if_not_exists:
        return f"{create.name} already exists, statement succeeded."
    return f"{_CREATED[kind]} {create.name} successfully created."


def _alter_stage(context: ClientContext, alter: said.AlterStage) -> None:
    ref = alter.format or FormatRef()
    stages.alter_stage(
        context.store,
        alter.name,
        location=alter.url,
        format=ref.format,
        format_name=ref.name,
        comment=alter.comment,
        if_exists=alter.if_exists,
    )


def _alter_pipe(lake: PipesOfALake, context: ClientContext, alter: said.AlterPipe) -> None:
    if alter.if_exists and definitions.find_pipe(context.store, alter.name) is None:
        return
    if alter.paused is not None:
        (lake.pause_pipe if alter.paused else lake.resume_pipe)(alter.name)
    if alter.comment is not None or alter.unset_comment:
        definitions.comment_on_pipe(context.store, alter.name, alter.comment, by=context.who)


def _dropped(context: ClientContext, drop: said.DropObject) -> str:
    found: object
    match drop.kind:
        case ObjectKind.STAGE:
            found = stages.drop_stage(context.store, drop.name, if_exists=drop.if_exists)
        case ObjectKind.FILE_FORMAT:
            found = file_formats.drop_file_format(context.store, drop.name, if_exists=drop.if_exists)
        case ObjectKind.PIPE:
            found = definitions.drop_pipe(context.store, drop.name, if_exists=drop.if_exists, by=context.who)
    if found is None:
        return f"Drop statement executed successfully ({drop.name} already dropped)."
    return f"{drop.name} successfully dropped."


def _refreshed(lake: PipesOfALake, context: ClientContext, refresh: said.RefreshPipe) -> DataFrame:
    """A row for each file that came into the queue: File, Status."""
    from pyspark.sql import functions as f

    spark, none = context.spark, "`File` STRING, `Status` STRING"
    pipe = definitions.find_pipe(context.store, refresh.name)
    if pipe is None and refresh.if_exists:
        return spark.createDataFrame([], none)
    queued = lake.refresh_pipe(refresh.name, refresh.prefix, refresh.modified_after)
    if pipe is None or queued.at is None:
        return spark.createDataFrame([], none)
    events = spark.read.format("delta").load(pipe.queue)
    sent = (f.col("at") == f.lit(queued.at)) & (f.col("source") == FileSource.REFRESH.value)
    return events.where(sent).select(f.col("file").alias("File"), f.lit("SENT").alias("Status")).orderBy("File")


def _shown(context: ClientContext, show: said.ShowObjects) -> DataFrame:
    spark, store = context.spark, context.store
    match show.kind:
        case ObjectKind.STAGE:
            return answers.shown_stages(spark, _meant(stages.list_stages(store), show))
        case ObjectKind.FILE_FORMAT:
            return answers.shown_formats(spark, _meant(file_formats.list_file_formats(store), show))
        case ObjectKind.PIPE:
            pipes = _meant(definitions.list_pipes(store), show)
            return answers.shown_pipes(spark, [(pipe, _pattern(pipe)) for pipe in pipes])


def _meant(found: Iterable[_One], show: said.ShowObjects) -> Iterable[_One]:
    """The objects that SHOW asks for, by LIKE and IN."""

    def is_in(name: str) -> bool:
        database, schema, _ = ("", "", *name_parts(name))[-3:]
        wanted = ((show.database, database), (_last(show.schema), schema))
        return all(one is None or one.casefold() == other.casefold() for one, other in wanted)

    return [one for one in listed(found, show.like) if is_in(one.name)]


def _last(schema: str | None) -> str | None:
    return None if schema is None else name_parts(schema)[-1]


def _pattern(pipe: Pipe) -> str | None:
    try:
        return copy_of(pipe).pattern
    except (SqlCompilationError, NotYetSupported):
        return None


def _described(context: ClientContext, describe: said.Describe) -> DataFrame:
    spark, store = context.spark, context.store
    match describe.kind:
        case ObjectKind.STAGE:
            return answers.described_stage(spark, stages.get_stage(store, describe.name))
        case ObjectKind.FILE_FORMAT:
            return answers.described_format(spark, file_formats.get_file_format(store, describe.name).format)
        case ObjectKind.PIPE:
            pipe = definitions.get_pipe(store, describe.name)
            return answers.shown_pipes(spark, [(pipe, _pattern(pipe))])


def _listed(context: ClientContext, wish: said.ListStage) -> DataFrame:
    """LIST. Raises StageNotFound, StageLocationMissing."""
    place = place_of(wish.source, context.store)
    listing = FileListing(place.location, context.options, only=FileFilter(prefix=place.prefix, regex=wish.pattern))
    try:
        return answers.listed_files(context.spark, place.location, listing)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StageLocationMissing(location=place.location) from error


def _tick(name: str) -> str:
    return name.replace("`", "``")
