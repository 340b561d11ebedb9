"""Files with a good footer that cannot be read, or that change while they are read: the others are loaded."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.engine.pipes.desk import Desk
from tidemark.pipes.driver.files_table import FilesTable

pytestmark = pytest.mark.spark

BY_NAME = "MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"
PARQUET = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = PARQUET) {BY_NAME} ON_ERROR"


def parquet(desk: Desk, name: str, ids: pa.Array, *, damaged: bool = False) -> Path:
    """A file of one row group; a damaged one has other bytes in front of its footer."""
    place = desk.files / name
    pq.write_table(pa.table({"id": ids}), place)
    if damaged:
        _damage(place, pq.read_metadata(place).row_group(0).column(0).total_compressed_size)
    return place


def _damage(place: Path, length: int) -> None:
    with place.open("r+b") as file:
        file.seek(4)
        file.write(b"\xff" * length)


def test_files_that_only_a_read_shows_to_be_broken_are_found_at_once_and_the_others_loaded(desk: Desk) -> None:
    """Spark names a file with a broken body, one for each read, and none for a type that it does not know."""
    desk.table("id BIGINT")
    for number in range(8):
        parquet(desk, f"f{number}.parquet", pa.array([number]), damaged=number in (1, 4, 6))
    parquet(desk, "nanos.parquet", pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("ns", "UTC")))
    found = {row.file: row for row in desk.ask(f"{PARQUET} = SKIP_FILE")}
    failed = sorted(file for file, row in found.items() if row.status == "LOAD_FAILED")
    assert failed == ["f1.parquet", "f4.parquet", "f6.parquet", "nanos.parquet"]
    assert "NANOS" in found["nanos.parquet"].first_error
    assert desk.rows() == [(0,), (2,), (3,), (5,), (7,)]
    results = desk.spark.read.format("delta").load(f"{desk.root}/db/t__copy_history").where("event = 'result'")
    assert results.select("attempt").distinct().count() == 1


def test_broken_orc_files_are_found_too(desk: Desk) -> None:
    desk.table("id BIGINT")
    for number in range(4):
        place = desk.files / f"f{number}.orc"
        orc.write_table(pa.table({"id": list(range(number * 1_000, (number + 1) * 1_000))}), place, compression="zlib")
        if number in (0, 2):
            _damage(place, orc.ORCFile(place).content_length - 4)
    done = desk.copied(f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = ORC) {BY_NAME} ON_ERROR = SKIP_FILE")
    assert [done[f"f{number}.orc"] for number in range(4)] == ["LOAD_FAILED", "LOADED", "LOAD_FAILED", "LOADED"]
    assert len(desk.rows()) == 2_000


def test_a_file_that_changes_while_it_is_read_is_reported(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a Parquet file cannot be taken back after the append. So the report of the file names the change."""
    append = FilesTable.append
    touched: list[Path] = []

    def touch(*given: object) -> None:
        append(*given)  # type: ignore[arg-type]
        for place in touched:
            os.utime(place, (1, 1))

    monkeypatch.setattr(FilesTable, "append", touch)
    desk.table("id BIGINT")
    for number in range(2):
        parquet(desk, f"f{number}.parquet", pa.array([number]))
    touched.append(desk.files / "f1.parquet")
    found = {row.file: row for row in desk.ask(f"{PARQUET} = SKIP_FILE")}
    assert {row.status for row in found.values()} == {"LOADED"}
    assert found["f0.parquet"].first_error is None
    assert "changed while it was loaded" in found["f1.parquet"].first_error
    history = (
        desk.lake.copy_history("db.t", datetime(2026, 1, 1, tzinfo=UTC)).where("FILE_NAME = 'f1.parquet'").collect()
    )
    assert "changed while it was loaded" in str(history)
    assert desk.rows() == [(0,), (1,)]
