"""A plan reads the rows that changed, leaves nothing behind, and touches neither the table nor the user's settings."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from tests.engine.lakes import Lake
from tidemark.jobs.workspace import Workspace
from tidemark.lake.orphans import sweep_directories

pytestmark = pytest.mark.spark


def test_a_scattered_delete_reads_the_deleted_rows_only(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 1000, 1, 4)")
    lake.sql("DELETE FROM {t} WHERE k % 100 = 7")
    said = lake.plan(start).explain()
    assert said["added"] == {"files": 0, "rows": 0, "bytes": 0}
    assert (said["removed"]["files"], said["removed"]["rows"]) == (4, 10)
    assert (said["candidate"], said["netting"]) == ("state", "one_side")
    assert len(lake.changes(start)) == 10


def test_what_came_and_went_and_what_was_only_rewritten_is_not_read(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 1000, 1, 4)")
    middle = lake.sql("INSERT INTO {t} SELECT 1, 'gone' FROM range(0, 50, 1, 1)", "DELETE FROM {t} WHERE v = 'gone'")
    assert lake.plan(start, middle).empty
    lake.sql("UPDATE {t} SET v = 'b' WHERE k = 3", "OPTIMIZE {t}")
    said = lake.plan(start).explain()
    assert (said["candidate"], said["removed"]["rows"], said["added"]["rows"]) == ("data_change", 1, 1)


def test_reading_leaves_table_and_settings_as_they_were(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql("UPDATE {t} SET v = 'b'")
    before = sorted(path for path in lake.path.rglob("*"))
    settings = dict(lake.spark.conf.getAll)
    frame = lake.frame(start)
    assert len(frame.collect()) == len(frame.collect()) == 2
    assert sorted(path for path in lake.path.rglob("*")) == before
    assert dict(lake.spark.conf.getAll) == settings
    lake.workspace.close()
    assert not [path for path in Path(lake.workspace.root.removeprefix("file://")).rglob("*") if path.is_file()]


def test_a_session_that_leaves_replay_to_delta_keeps_its_settings(lake: Lake) -> None:
    """Our small logs are replayed in one partition all the same, and only ours."""
    session = lake.spark.newSession()
    session.conf.unset("spark.databricks.delta.snapshotPartitions")
    here = Lake(session, lake.path, lake.workspace)
    start = here.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    here.sql("UPDATE {t} SET v = 'b'")  # Delta itself puts settings into a session that uses it
    settings = dict(session.conf.getAll)
    assert here.changes(start) == [("DELETE", True, 1, "a"), ("INSERT", True, 1, "b")]
    assert dict(session.conf.getAll) == settings
    assert session.conf.get("spark.databricks.delta.snapshotPartitions", None) is None


def test_orphans_of_a_workspace_go_by_age(tmp_path: Path) -> None:
    dead = Workspace(f"file://{tmp_path}/a b%", "dead/owner")
    dead.write(f"{dead.new_directory()}/_delta_log/0.json", b"{}")
    now = datetime.now(UTC)
    swept = [sweep_directories(dead.root, older_than=now + timedelta(hours=hours)) for hours in (-1, 1, 1)]
    assert [len(one.removed) for one in swept] == [0, 1, 0]
    dead.close()


def test_sweeping_bears_an_owner_who_closes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Workspace(f"file://{tmp_path}", "other")
    other.write(f"{other.new_directory()}/_delta_log/0.json", b"{}")
    seen = LocalFileSystem.rm

    def closed_first(self: LocalFileSystem, path: str, **how: Any) -> None:
        monkeypatch.setattr(LocalFileSystem, "rm", seen)
        other.close()
        seen(self, path, **how)

    monkeypatch.setattr(LocalFileSystem, "rm", closed_first)
    assert sweep_directories(other.root, older_than=datetime.now(UTC) + timedelta(hours=1)).removed == ()


def test_one_sweep_looks_at_a_bounded_number_and_hours_at_all(tmp_path: Path) -> None:
    dead = Workspace(f"file://{tmp_path}", "dead")
    for _ in range(30):
        dead.write(f"{dead.new_directory()}/_delta_log/0.json", b"{}")
    later = datetime.now(UTC) + timedelta(days=1)
    assert 0 < len(sweep_directories(dead.root, older_than=later, at_most=10).removed) < 30
    for hour in range(1, 40):
        sweep_directories(dead.root, older_than=later + timedelta(hours=hour), at_most=10)
    assert list((tmp_path / "log_only").iterdir()) == []


def test_half_made_directories_are_swept_and_one_that_is_still_written_to_stays(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    half, written = tmp_path / "log_only" / "half", tmp_path / "log_only" / "written"
    for directory in (half, written / "_delta_log"):
        directory.mkdir(parents=True)
    for name in ("0.json", "1.json"):
        (written / "_delta_log" / name).write_text("{}")
    old = (now - timedelta(days=9)).timestamp()
    for file in (half, written, written / "_delta_log" / "0.json"):
        os.utime(file, (old, old))
    swept = sweep_directories(f"file://{tmp_path}/log_only", older_than=now - timedelta(days=7))
    assert len(swept.removed) == 1
    assert not half.exists()
    assert written.exists()
