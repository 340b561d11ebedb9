"""Change streams and their consumer groups are looked at and acted on from the command line, without Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.airflow.command_line import Said, run_airflow
from tests.unit.lake.delta_directories import commit, singers
from tidemark.change_streams.worker import defining
from tidemark.change_streams.worker.backfill import begin_backfill, finish_backfill
from tidemark.change_streams.worker.definitions import get_change_stream, list_change_streams
from tidemark.change_streams.worker.groups import create_group, group_status, list_groups
from tidemark.control.store import ControlStore
from tidemark.hooks.lake_tables import lake_tables_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.lake.log_paths import logs_root

pytestmark = pytest.mark.airflow


@pytest.fixture
def store(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ControlStore:
    """`names` watches singers, and the group `mirror` reads it; albums have no key."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    singers(tmp_path / "lake", "music.singers", key="SingerId", versions=3)
    singers(tmp_path / "lake", "music.albums")
    hook = TidemarkHook()
    store = hook.open_store()
    watch, logs = {"music.singers": ["LastName"]}, logs_root(hook.settings.workspace)
    defining.create(store, "names", watch=watch, options={}, tables=lake_tables_of(hook), logs=logs)
    create_group(store, "names", "mirror", "earliest")
    return store


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", *arguments)


def rows(*arguments: str) -> list[dict[str, Any]]:
    said = tidemark(*arguments, "--output", "json")
    assert said.returncode == 0, said.stderr
    return list(json.loads(said.stdout))


def refused(*arguments: str) -> str:
    said = tidemark(*arguments)
    assert (said.returncode, said.stdout, "Traceback" in said.stderr) == (1, "", False)
    return said.stderr


def test_change_streams_are_listed_and_shown_with_tables_and_groups(store: ControlStore) -> None:
    (listed,) = rows("change-streams", "list")
    assert (listed["name"], listed["state"], listed["watches"]) == ("names", "watching", "music.singers")
    assert (listed["groups"], listed["retention"]) == ("1", "1 day, 0:00:00")
    (shown,) = yaml.safe_load(tidemark("change-streams", "show", "NAMES", "--output", "yaml").stdout)
    assert shown["tables"] == [
        {"table": "music.singers", "keys": "SingerId", "columns": "LastName", "captured": "2"},
    ]
    assert [(one["group"], one["state"]) for one in shown["groups"]] == [("mirror", "running")]
    assert "music.singers" in tidemark("change-streams", "show", "names").stdout
    assert "ChangeStreamNotFound" in refused("change-streams", "show", "nothing")


def test_partitions_are_listed_for_the_change_stream_and_for_a_group(store: ControlStore) -> None:
    (captured,) = rows("change-streams", "partitions", "names")
    (read,) = rows("change-streams", "partitions", "NAMES", "--group", "MIRROR")
    assert (captured["state"], captured["keys"], captured["parents"]) == ("active", "[0, 65536)", "")
    assert (read["state"], read["partition_token"]) == ("created", captured["partition_token"])
    assert "ConsumerGroupNotFound" in refused("change-streams", "partitions", "names", "--group", "nobody")


def test_one_of_all_tables_says_which_it_leaves_out_and_why(store: ControlStore) -> None:
    rows("change-streams", "suspend", "names")
    rows("change-streams", "resume", "names", "--on", "all")
    (shown,) = rows("change-streams", "show", "names")
    assert (shown["watches"], [one["table"] for one in shown["left_out"]]) == ("ALL (music.singers)", ["music.albums"])
    assert "key" in shown["left_out"][0]["why"]


def test_a_change_stream_is_suspended_and_resumed_from_the_newest_version_on(
    store: ControlStore, tmp_path: Path
) -> None:
    (shown,) = rows("change-streams", "suspend", "names", "--dry-run")
    assert get_change_stream(store, "names").tables
    (done,) = rows("change-streams", "suspend", "names")
    assert ({**done, "done": "False"}, done["after"]) == (shown, "")
    assert rows("change-streams", "suspend", "names")[0]["before"] == ""
    assert rows("change-streams", "list")[0]["state"] == "suspended"
    commit(tmp_path / "lake/music/singers", 3)
    resume = ("change-streams", "resume", "names", "--on", "music.singers")
    rows(*resume, "--dry-run")
    assert get_change_stream(store, "names").tables == ()
    for _ in range(2):
        assert rows(*resume)[0]["after"] == "music.singers"
    (watched,) = get_change_stream(store, "names").tables
    assert (watched.captured, watched.keys) == (3, ("SingerId",))


def test_what_is_not_suspended_keeps_what_it_watches(store: ControlStore) -> None:
    kept = get_change_stream(store, "names")
    shown = refused("change-streams", "resume", "names", "--on", "music.albums", "--key", "SingerId")
    assert "it is not suspended, it watches music.singers" in shown
    assert get_change_stream(store, "names") == kept
    rows("change-streams", "suspend", "names")
    assert "ChangeStreamRefused" in refused("change-streams", "resume", "names", "--on", "music.albums")
    rows("change-streams", "resume", "names", "--on", "music.albums", "--key", "SingerId")


def test_a_backfill_is_rehearsed_run_on_spark_and_found_by_a_second_run(
    store: ControlStore, tmp_path: Path, spark_submit: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = spark_submit("exit 9")
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    singers(tmp_path / "lake", "music.mirror")
    backfill = ("change-streams", "backfill", "names", "--group", "new", "--table", "music.singers")
    into = (*backfill, "--target", "music.mirror")
    (shown,) = rows(*into, "--dry-run")
    assert (shown["version"], shown["rows"], shown["done"]) == ("2", None, "False")
    assert [one.name for one in list_groups(store, "names")] == ["mirror"]
    assert "TargetNotFound" in refused(*backfill, "--target", "music.nowhere")
    assert "does not watch it" in refused(*backfill[:-1], "music.albums", "--target", "music.mirror")
    assert "nobody confirmed" in refused(*into, "--overwrite")
    assert not started.exists()

    assert "JobDied" in refused(*into)
    assert started.exists()
    started.unlink()
    target = TidemarkHook().table("music.mirror")
    finish_backfill(store, begin_backfill(store, "names", "new", "music.singers", target), 3)
    (done,) = rows(*into)
    assert (done["group"], done["version"], done["rows"], done["done"]) == ("new", "2", "3", "True")
    assert not started.exists()


def test_a_change_stream_is_dropped_once_it_is_confirmed(store: ControlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert "Nothing was done" in refused("change-streams", "drop", "names")
    assert rows("change-streams", "drop", "names", "--dry-run")[0]["done"] == "False"
    assert len(list_groups(store, "names")) == 1
    assert rows("change-streams", "drop", "names", "--yes")[0]["before"] == "music.singers"
    assert list_change_streams(store) == ()
    assert "ChangeStreamNotFound" in refused("change-streams", "drop", "names", "--yes")
    assert rows("change-streams", "drop", "names", "--if-exists") == []


def test_a_group_is_paused_resumed_and_shown(store: ControlStore) -> None:
    for act, paused in (("pause", True), ("resume", False)):
        (shown,) = rows("consumer-groups", act, "names", "mirror", "--dry-run")
        assert group_status(store, "names", "mirror").group.paused is not paused
        (done,) = rows("consumer-groups", act, "NAMES", "mirror")
        assert ({**done, "done": "False"}, done["before"] != done["after"]) == (shown, True)
        assert rows("consumer-groups", act, "names", "mirror")[0]["before"] == done["after"]
        assert group_status(store, "names", "mirror").group.paused is paused
    (listed,) = rows("consumer-groups", "list", "names")
    (shown,) = rows("consumer-groups", "show", "names", "mirror")
    assert (listed["group"], shown["change_stream"], shown["partitions"]) == (
        "mirror",
        "names",
        [{"state": "created", "count": "1"}],
    )


def test_a_reset_is_confirmed_and_begins_another_group_of_the_name(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = group_status(store, "names", "mirror").group
    reset = ("consumer-groups", "reset", "names", "mirror", "--from", "earliest")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "Nothing was done" in refused(*reset)
    rows(*reset, "--dry-run")
    assert group_status(store, "names", "mirror").group == before
    rows(*reset, "--yes")
    assert group_status(store, "names", "mirror").group.uid != before.uid
    for start, error in (("yesterday", "InvalidArgument"), ("2001-01-01T00:00:00Z", "OutOfRange")):
        assert error in refused("consumer-groups", "reset", "names", "mirror", "--from", start)
    assert "ConsumerGroupNotFound" in refused("consumer-groups", "pause", "names", "nobody")


def test_a_group_is_dropped_and_its_change_stream_stays(store: ControlStore) -> None:
    drop = ("consumer-groups", "drop", "names", "mirror")
    assert rows(*drop, "--dry-run")[0]["done"] == "False"
    assert len(list_groups(store, "names")) == 1
    assert rows(*drop, "--yes")[0]["before"] == "running"
    assert list_groups(store, "names") == ()
    assert "ConsumerGroupNotFound" in refused(*drop, "--yes")
    assert rows(*drop, "--if-exists") == []
    assert len(list_change_streams(store)) == 1
