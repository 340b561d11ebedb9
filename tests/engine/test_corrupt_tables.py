"""What a consumer of a stream sees of a table that is damaged: an error with a name and the file, and no row."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.engine.lakes import Lake
from tidemark.changes.driver.window import plan_window, read_window
from tidemark.client import Version, connect
from tidemark.errors import CorruptLog, DataFileUnreadable, StreamStale, VersionVacuumed
from tidemark.model.streams import StreamMode, StreamWindow, TableRef, WindowKind

pytestmark = pytest.mark.spark


def window(lake: Lake, start: int, end: int) -> StreamWindow:
    source = TableRef("db.t", lake.log.uri, lake.log.state(start).table_id)
    return StreamWindow("u", "s", source, StreamMode.STANDARD, WindowKind.CHANGES, start=start, end=end)


def commit(lake: Lake, version: int) -> Path:
    return lake.path / "_delta_log" / f"{version:020d}.json"


def local(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def five_rows_less_one(lake: Lake) -> tuple[int, int]:
    """A file of five rows, of which the window deletes one."""
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 5, 1, 1)")
    return start, lake.sql("DELETE FROM {t} WHERE k = 1")


def test_a_commit_cut_short_names_the_commit(lake: Lake) -> None:
    start, end = five_rows_less_one(lake)
    whole = commit(lake, end).read_bytes()
    for kept in (0, len(whole) // 2, whole.rindex(b"\n", 0, -1) + 1):
        given = window(lake, start, end)
        commit(lake, end).write_bytes(whole[:kept])
        with pytest.raises(CorruptLog) as raised:
            plan_window(given)
        assert f"{end:020d}" in raised.value.facts["file"]
        commit(lake, end).write_bytes(whole)


def test_a_commit_that_is_missing_makes_the_stream_stale(lake: Lake) -> None:
    start, end = five_rows_less_one(lake)
    lake.sql("INSERT INTO {t} VALUES (9, 'z')")
    given = window(lake, start, end + 1)
    commit(lake, end).unlink()
    with pytest.raises(StreamStale, match=f"lacks version {end}"):
        plan_window(given)


def test_a_deletion_vector_that_is_damaged_is_named(lake: Lake) -> None:
    start, end = five_rows_less_one(lake)
    (file,) = lake.path.rglob("deletion_vector_*.bin")
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(CorruptLog, match=f"{file.name}.*CRC-32"):
        plan_window(window(lake, start, end))


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_a_data_file_cut_short_is_named_before_a_row_is_read(lake: Lake, kept: int) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (0, 'a')")
    end = lake.sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 5, 1, 1)")
    given = window(lake, start, end)
    (plan,) = plan_window(given)
    (added,) = plan.files
    file = local(added.path)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(CorruptLog, match=rf"{file.name}.*but {added.size} in the log"):
        read_window(lake.spark, given, lake.workspace)
    file.unlink()
    with pytest.raises(VersionVacuumed, match=file.name):
        read_window(lake.spark, given, lake.workspace)


def test_a_data_file_that_is_no_parquet_is_named_when_its_rows_are_counted(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 5, 1, 1)")
    (file,) = (file for file in lake.path.glob("*.parquet"))
    lake.sql("DELETE FROM {t} WHERE k = 1")
    for log_file in (lake.path / "_delta_log").glob("*.json"):
        log_file.write_text(log_file.read_text().replace('"stats"', '"not_stats"'))
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(CorruptLog, match=rf"{file.name}.*not a Parquet file"):
        lake.plan(start)


@pytest.mark.parametrize("what", ["a data file", "a deletion vector"])
def test_damage_that_only_spark_finds_fails_the_job_by_name_and_writes_nothing(
    lake: Lake, tmp_path: Path, what: str
) -> None:
    """A data file of the right size with other bytes; a deletion vector that only Spark has to read."""
    start = lake.create().version
    lake.sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 5, 1, 1)", "DELETE FROM {t} WHERE k = 1")
    target = Lake(lake.spark, tmp_path / "target", lake.workspace)
    target.sql("CREATE TABLE {t} (k INT, v STRING) USING delta")
    pattern = "part-*.parquet" if what == "a data file" else "deletion_vector_*.bin"
    (file,) = lake.path.rglob(pattern)
    size = file.stat().st_size
    file.with_name(f".{file.name}.crc").unlink()  # only Hadoop's local file system has these
    file.write_bytes(b"\0" * size if what == "a data file" else file.read_bytes()[:-1] + b"\0")
    client = connect(lake.spark, f"sqlite:///{tmp_path}/control.db", lake_root=str(tmp_path / "lake"))
    client.create_stream("s", on=str(lake.path), at=Version(start))
    with pytest.raises((DataFileUnreadable, CorruptLog)) as raised, client.transaction() as tx:
        tx.sql(f"INSERT INTO {target.name} SELECT k, v FROM s")
    assert raised.value.facts["file"].endswith(file.name)
    assert ("fails its CRC-32" if what == "a deletion vector" else "Parquet") in str(raised.value)
    assert target.spark.read.format("delta").load(str(target.path)).count() == 0
    assert client.has_data("s")
