"""COPY statements with their names resolved, in the store and in the lake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import born
from tidemark.control.store import ControlStore
from tidemark.errors import FileFormatNotFound, InvalidArgument, StageNotFound, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.tables import resolve
from tidemark.model.streams import TableRef
from tidemark.pipes.model.copying import CopyOptions, ErrorMode, Load, OnError
from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.model.status import NeededObjects
from tidemark.pipes.planning.formats import file_format
from tidemark.pipes.planning.sql_copy import copy_into
from tidemark.pipes.planning.statements import StageSource
from tidemark.pipes.worker import definitions, file_formats, needs, stages
from tidemark.pipes.worker.resolve import Place, load_of, place_of
from tidemark.sql.text import Cursor

SKIP = OnError(ErrorMode.SKIP_FILE)
BARS = file_format("CSV", {"FIELD_DELIMITER": "|"})


class Lake:
    """One table, shop.orders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        born(root / "shop" / "orders")

    def tables(self, table: TableRef | str) -> DeltaLog:
        return DeltaLog.open(resolve(str(table), str(self.root))[0])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def store(copied_store: ControlStore) -> ControlStore:
    file_formats.create_file_format(copied_store, "bars", BARS)
    stages.create_stage(copied_store, "raw", "s3://bucket/raw", format_name="bars")
    stages.create_stage(copied_store, "plain", "/data/in")
    return copied_store


def load(store: ControlStore, lake: Lake, statement: str) -> Load:
    return load_of(copy_into(Cursor(statement)), store=store, tables=lake.tables, default_error=SKIP)


def pipe(store: ControlStore, statement: str, name: str = "p") -> Pipe:
    return definitions.create_pipe(store, name, statement, queue=f"/q/{name}__files", by="ana")


def test_a_load_has_all_that_the_statement_says(store: ControlStore, lake: Lake) -> None:
    found = load(
        store,
        lake,
        "COPY INTO shop.orders (id, name) FROM (SELECT t.$1, $2 FROM @RAW/2024/ t) "
        "PATTERN = '.*csv' PURGE = TRUE ON_ERROR = CONTINUE",
    )
    assert found == Load(
        table="shop.orders",
        path=f"file://{lake.root}/shop/orders",
        location="s3://bucket/raw",
        prefix="2024/",
        pattern=".*csv",
        format=BARS,
        columns=("id", "name"),
        select="t.$1, $2",
        alias="t",
        options=CopyOptions(on_error=OnError(ErrorMode.CONTINUE), purge=True),
    )
    bare = load(store, lake, "COPY INTO shop.orders FROM @plain FILES = ('a.csv', 'b.csv')")
    assert (bare.location, bare.prefix, bare.files) == ("file:///data/in", "", ("a.csv", "b.csv"))
    assert (bare.format, bare.options) == (FileFormat(), CopyOptions(on_error=SKIP))


def test_a_place_is_a_stage_or_a_location_in_quotes(store: ControlStore, lake: Lake) -> None:
    assert place_of(StageSource("RAW", "2024"), store) == Place("s3://bucket/raw", "2024")
    found = load(store, lake, "COPY INTO shop.orders FROM 's3a://b/in/' PREFIX = 'x'")
    assert (found.location, found.prefix) == ("s3://b/in", "x")
    with pytest.raises(InvalidArgument):
        load(store, lake, "COPY INTO shop.orders FROM 's3://user:pw@b/in'")


def test_a_named_format_takes_the_place_of_the_stages_and_options_are_added_to_it(
    store: ControlStore, lake: Lake
) -> None:
    def of(options: str) -> FileFormat:
        return load(store, lake, f"COPY INTO shop.orders FROM @raw {options}").format

    assert of("") == BARS
    assert of("FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1)") == file_format(
        "CSV", {"FIELD_DELIMITER": "|", "SKIP_HEADER": 1}
    )
    assert of("FILE_FORMAT = (TYPE = JSON)") == FileFormat(FileType.JSON)
    file_formats.create_file_format(store, "heads", file_format("CSV", {"SKIP_HEADER": 1}))
    assert of("FILE_FORMAT = (FORMAT_NAME = 'HEADS')") == file_format("CSV", {"SKIP_HEADER": 1})
    file_formats.drop_file_format(store, "bars")
    assert of("FILE_FORMAT = (FORMAT_NAME = 'heads')") == file_format("CSV", {"SKIP_HEADER": 1})
    with pytest.raises(FileFormatNotFound, match=r"no file format bars\."):
        of("")


def test_a_name_that_leads_nowhere_is_an_error(store: ControlStore, lake: Lake) -> None:
    with pytest.raises(StageNotFound, match=r"no stage rww\. These exist: raw"):
        load(store, lake, "COPY INTO shop.orders FROM @rww")
    with pytest.raises(FileFormatNotFound):
        load(store, lake, "COPY INTO shop.orders FROM @raw FILE_FORMAT = (FORMAT_NAME = 'none')")
    with pytest.raises(TableNotFound):
        load(store, lake, "COPY INTO shop.missing FROM @raw")


def test_a_pipe_needs_the_objects_that_its_statement_names(store: ControlStore, lake: Lake) -> None:
    made = pipe(store, "COPY INTO shop.orders FROM @raw")

    def needed(statement: str = made.copy_statement) -> NeededObjects:
        return needs.needed_objects(store, replace(made, copy_statement=statement), lake.tables)

    assert needed() == NeededObjects()
    assert needed("COPY INTO shop.none FROM 's3://b/in'") == NeededObjects(table=False)
    file_formats.drop_file_format(store, "bars")
    assert needed() == NeededObjects(file_format=False)
    stages.drop_stage(store, "raw")
    assert needed() == NeededObjects(stage=False)


def test_the_pipes_of_a_table_are_found_by_every_spelling_also_dropped_ones(store: ControlStore) -> None:
    pipe(store, "COPY INTO Shop.Orders FROM @raw", "a")
    definitions.drop_pipe(store, "a", by="ana")
    pipe(store, "COPY INTO shop.orders FROM @plain", "a")
    pipe(store, "COPY INTO delta.`/lake/x` FROM @raw", "by_path")
    pipe(store, "COPY INTO shop.other FROM @raw", "b")
    found = needs.pipes_of_table(store, "shop.`ORDERS`")
    assert [(one.name, one.ended_at is None) for one in found] == [("a", False), ("a", True)]
    assert [one.name for one in needs.pipes_of_table(store, "file:/lake/x")] == ["by_path"]
