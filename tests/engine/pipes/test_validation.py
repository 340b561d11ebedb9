"""VALIDATION_MODE reports each file that a load could not read, and changes nothing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.engine.pipes.desk import Desk
from tidemark.errors import CopyAborted

pytestmark = pytest.mark.spark

BY_NAME = "MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"
ROWS = 1_000


def _parquet(place: Path, column: pa.Array) -> int:
    pq.write_table(pa.table({"id": column}), place)
    size: int = pq.read_metadata(place).row_group(0).column(0).total_compressed_size
    return size


def _orc(place: Path, column: pa.Array) -> int:
    orc.write_table(pa.table({"id": column}), place, compression="zlib")
    size: int = orc.ORCFile(place).content_length
    return size - 4


WRITERS: dict[str, Callable[[Path, pa.Array], int]] = {"parquet": _parquet, "orc": _orc}


def put(desk: Desk, name: str, *, damaged: bool = False, as_text: bool = False) -> None:
    """A file of a thousand rows; a damaged one has other bytes in front of its footer."""
    place, kind = desk.files / name, pa.string() if as_text else pa.int64()
    length = WRITERS[place.suffix[1:]](place, pa.array(range(ROWS)).cast(kind))
    if damaged:
        with place.open("r+b") as file:
            file.seek(4)
            file.write(b"\xff" * length)


@pytest.mark.parametrize("as_text", [False, True], ids=["of the types of the table", "of other types"])
@pytest.mark.parametrize("kind", list(WRITERS))
def test_files_with_a_whole_footer_and_a_broken_body_are_errors(desk: Desk, kind: str, *, as_text: bool) -> None:
    desk.table("id BIGINT")
    for number in range(6):
        put(desk, f"f{number}.{kind}", damaged=number in (1, 4), as_text=as_text)
    (desk.files / f"no footer.{kind}").write_bytes(b"x" * 100)
    load = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = {kind.upper()}) {BY_NAME}"
    found = desk.ask(f"{load} VALIDATION_MODE = RETURN_ERRORS")
    assert sorted(row.file for row in found) == [f"f1.{kind}", f"f4.{kind}", f"no footer.{kind}"]
    assert all(row.error for row in found)
    assert desk.rows() == []


def test_rows_of_a_file_with_a_broken_body_are_its_error(desk: Desk) -> None:
    desk.table("id BIGINT")
    put(desk, "bad.parquet", damaged=True)
    load = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = PARQUET) {BY_NAME} VALIDATION_MODE = RETURN_2_ROWS"
    with pytest.raises(CopyAborted, match=r"file bad\.parquet"):
        desk.lake.sql(load)
    put(desk, "bad.parquet")
    assert [row.id for row in desk.ask(load)] == [0, 1]


def test_packed_files_without_a_readable_header_are_errors_beside_others(desk: Desk) -> None:
    desk.table("id BIGINT")
    whole = gzip.compress(b"id\n" + b"".join(b"%d\n" % number for number in range(ROWS)))
    for name in ("cut.csv.gz", "short.csv.gz"):
        (desk.files / name).write_bytes(whole[:12])
    (desk.files / "whole.csv.gz").write_bytes(whole)
    desk.put(other="key\n1\n")
    load = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = CSV PARSE_HEADER = TRUE) {BY_NAME}"
    found = desk.ask(f"{load} VALIDATION_MODE = RETURN_ERRORS")
    assert sorted(row.file for row in found) == ["cut.csv.gz", "other.csv", "short.csv.gz"]


def test_a_validation_leaves_not_null_on_a_column_that_a_load_would_take_it_from(desk: Desk) -> None:
    desk.table("id BIGINT, name STRING NOT NULL")
    put(desk, "a.parquet")
    load = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = PARQUET) {BY_NAME} ENABLE_SCHEMA_EVOLUTION = TRUE"
    assert desk.ask(f"{load} VALIDATION_MODE = RETURN_ERRORS") == []
    assert len(desk.ask(f"{load} VALIDATION_MODE = RETURN_2_ROWS")) == 2
    history = desk.spark.sql(f"DESCRIBE HISTORY delta.`{desk.root}/db/t`").collect()
    assert [row.operation for row in history] == ["CREATE TABLE"]
    assert desk.copied(load) == {"a.parquet": "LOADED"}
    assert len(desk.rows()) == ROWS
