"""A window that cannot be had says why, by an error of its own, before a row is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.engine.lakes import Lake
from tidemark.changes.driver.window import plan_window, read_window
from tidemark.errors import (
    ExternalTableNotFound,
    RowTrackingDisabled,
    SourceRecreated,
    StreamStale,
    TrackingInterrupted,
    UnsupportedTableFeature,
    VersionVacuumed,
)
from tidemark.model.streams import ACTION, StreamMode, StreamWindow, TableRef, WindowKind
from tidemark.streams.driver import windows

pytestmark = pytest.mark.spark


def window(lake: Lake, start: int, end: int, table_id: str | None = None, **facts: object) -> StreamWindow:
    given = {"mode": StreamMode.STANDARD, "kind": WindowKind.CHANGES, **facts}
    source = TableRef("db.t", lake.log.uri, table_id or lake.log.state().table_id)
    return StreamWindow("u", "s", source, start=start, end=end, **given)  # type: ignore[arg-type]


def test_a_window_shows_changes_or_initial_rows(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    end = lake.sql("DELETE FROM {t} WHERE k = 1")
    changes = read_window(lake.spark, window(lake, start, end), lake.workspace)
    assert [(row.k, row[ACTION]) for row in changes.collect()] == [(1, "DELETE")]
    initial = window(lake, start, start, kind=WindowKind.INITIAL_ROWS)
    rows = read_window(lake.spark, initial, lake.workspace)
    assert [(row.k, row[ACTION]) for row in rows.collect()] == [(1, "INSERT")]
    with pytest.raises(ExternalTableNotFound):
        windows.read_window(lake.spark, window(lake, start, end, mode=StreamMode.INSERT_ONLY), lake.workspace)


def test_files_that_vacuum_took_are_named(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 5, 1, 1)")
    end = lake.sql("INSERT OVERWRITE {t} VALUES (9, 'z')")
    session = lake.spark.newSession()
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.sql(f"VACUUM {lake.name} RETAIN 0 HOURS")
    with pytest.raises(VersionVacuumed) as raised:
        windows.read_window(lake.spark, window(lake, start, end), lake.workspace)
    assert "the stream 's'" in str(raised.value)
    assert raised.value.facts["count"] == 1
    assert raised.value.facts["first"].endswith(".parquet")
    initial = window(lake, start, start, kind=WindowKind.INITIAL_ROWS)
    with pytest.raises(VersionVacuumed, match="the stream 's'"):
        windows.read_window(lake.spark, initial, lake.workspace)


def test_a_deletion_vector_that_is_gone_is_a_vacuumed_version(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 5, 1, 1)")
    end = lake.sql("DELETE FROM {t} WHERE k = 1")
    for file in lake.path.rglob("deletion_vector_*.bin"):
        file.unlink()
    with pytest.raises(VersionVacuumed, match="deletion_vector"):
        plan_window(window(lake, start, end))


def test_a_window_before_the_log_begins_is_stale(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    end = lake.sql("INSERT INTO {t} VALUES (2, 'a')", "INSERT INTO {t} VALUES (3, 'a')")
    given = window(lake, start, end)
    copy = Lake(lake.spark, Path(f"{lake.path} cleaned"), lake.workspace)
    shutil.copytree(lake.path, copy.path)
    for name in range(start + 2):
        (copy.path / "_delta_log" / f"{name:020d}.json").unlink()
    stale = StreamWindow(**{**vars(given), "source": TableRef("db.t", str(copy.path), given.source.table_id)})
    with pytest.raises((StreamStale,)) as raised:
        plan_window(stale)
    assert raised.value.facts["version"] == start


def test_a_table_recreated_under_its_name_is_another_table(lake: Lake) -> None:
    """R82, R91: seen at the head, and inside a window whose end has the old id again (RESTORE brings it back)."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    old = lake.log.state().table_id
    with pytest.raises(SourceRecreated) as raised:
        plan_window(window(lake, start, start, table_id="another"))
    assert raised.value.facts["found"] == old
    given = window(lake, start, start + 2)
    metadata = lake.log.state().metadata
    for version, table_id in ((start + 1, "another"), (start + 2, old)):
        body = {
            "id": table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": metadata.schema_json,
            "partitionColumns": [],
            "configuration": dict(metadata.configuration),
        }
        (lake.path / "_delta_log" / f"{version:020d}.json").write_text(json.dumps({"metaData": body}))
    with pytest.raises(SourceRecreated) as raised:
        plan_window(given)
    assert (raised.value.facts["found"], raised.value.facts["stream"]) == ("another", "s")


def test_tracking_that_was_switched_in_the_window_is_named(lake: Lake) -> None:
    """R85: off, and on again, which gives other hidden columns; a table without tracking says how to turn it on."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    with pytest.raises(TrackingInterrupted, match="switched at version"):
        lake.plan(start)
    with pytest.raises(RowTrackingDisabled, match="ALTER TABLE delta"):
        lake.plan(lake.version)


def test_a_source_that_has_a_column_of_the_stream_is_refused_by_name(lake: Lake) -> None:
    lake.create("k INT, `metadata$Action` STRING").sql("INSERT INTO {t} VALUES (1, 'a')")
    with pytest.raises(UnsupportedTableFeature, match=r"column metadata.Action"):
        lake.plan(0)


def test_stats_that_the_log_left_out_come_from_the_footer(lake: Lake) -> None:
    """`numRecords` is needed to read only the rows in which two deletion vectors differ."""
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 5, 1, 1)")
    lake.sql("DELETE FROM {t} WHERE k = 1")
    for file in (lake.path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            for body in action.values():
                body.pop("stats", None)
        file.write_text("\n".join(map(json.dumps, actions)))
    assert lake.changes(start) == [("DELETE", False, 1, "a")]
