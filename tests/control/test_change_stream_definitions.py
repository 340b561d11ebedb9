"""Change streams are defined over real logs and a real store: everything is looked at before anything is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lake.delta_directories import add, commit, singers
from tidemark.change_streams.planning.sql.parse import parse_change_stream_sql
from tidemark.change_streams.worker import defining
from tidemark.change_streams.worker.capture import open_batch
from tidemark.change_streams.worker.definitions import get_change_stream, list_change_streams, suspend
from tidemark.change_streams.worker.statements import run_statement
from tidemark.change_streams.worker.watching import LakeTables, find_new_tables, tables_left_out
from tidemark.control.store import ControlStore
from tidemark.errors import (
    ChangeStreamExists,
    ChangeStreamNotFound,
    ChangeStreamRefused,
    InvalidArgument,
    RowTrackingDisabled,
    TidemarkError,
    UnsupportedTableFeature,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.listing import table_names
from tidemark.lake.tables import table_ref
from tidemark.model.streams import TableRef

NOW = datetime(2020, 5, 1, 12, tzinfo=UTC)  # no file of a log is older, unless a test says so


@pytest.fixture
def store(tmp_path: Path) -> ControlStore:
    return ControlStore(f"sqlite:///{tmp_path}/control.db", clock=lambda: NOW)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Singers with key and versions 0 to 2, albums without a key; a table without row tracking."""
    root = tmp_path / "lake"
    singers(root, "music.singers", key="SingerId", versions=3)
    singers(root, "music.albums")
    return root


def tables(lake: Path, turn_on: Callable[[TableRef], None] | None = None) -> LakeTables:
    return LakeTables(
        reference=lambda name: table_ref(name, str(lake)),
        open=lambda ref: DeltaLog.open(ref.path),
        names=lambda: table_names(str(lake)),
        turn_on=turn_on,
    )


def create(store: ControlStore, lake: Path, name: str = "s", watch: Any = "music.singers", **more: Any) -> Any:
    given = {"keys": None, "options": {}, "tables": tables(lake), **more}
    return defining.create(store, name, watch=watch, logs=f"file://{lake}/_tidemark/change_streams", **given)


def alter(store: ControlStore, lake: Path, name: str = "s", **more: Any) -> Any:
    return defining.alter(store, name, **{"options": {}, "tables": tables(lake), **more})


def watched(stream: Any) -> dict[str, Any]:
    return {one.table.name: (one.keys, one.columns, one.captured) for one in stream.tables}


def test_a_stream_watches_from_the_newest_version_and_has_a_log_of_its_own(store: ControlStore, lake: Path) -> None:
    made = create(
        store, lake, watch={"music.singers": ["lastname"], "music.albums": []}, keys={"MUSIC.albums": "SingerId"}
    )
    assert watched(made) == {
        "music.singers": (("SingerId",), ("LastName",), 2),
        "music.albums": (("SingerId",), (), 0),
    }
    assert made.log_path.startswith(f"file://{lake}/_tidemark/change_streams/")
    assert made.log_path != create(store, lake, "other").log_path
    assert made == get_change_stream(store, "S")


def test_tables_are_found_whatever_their_case_unless_two_are_alike(store: ControlStore, lake: Path) -> None:
    made = create(store, lake, watch={"MUSIC.Singers": []})
    assert watched(made) == {"music.singers": (("SingerId",), (), 2)}
    with pytest.raises(ChangeStreamRefused, match="more than once"):
        create(store, lake, "twice", watch=["music.singers", "Music.singers"])
    singers(lake, "music.SINGERS", key="SingerId")
    with pytest.raises(ChangeStreamRefused, match=r"Music\.singers cannot be watched"):
        create(store, lake, "unsure", watch="Music.singers")
    assert watched(create(store, lake, "sure", watch="music.SINGERS")) == {"music.SINGERS": (("SingerId",), None, 0)}


def test_without_a_watch_list_it_is_suspended_until_it_is_altered(store: ControlStore, lake: Path) -> None:
    assert watched(create(store, lake, watch=None)) == {}
    commit(lake / "music" / "singers", 3)
    assert watched(alter(store, lake, watch="music.singers")) == {"music.singers": (("SingerId",), None, 3)}


def test_creating_it_again_is_refused_or_keeps_it_as_it_is(store: ControlStore, lake: Path) -> None:
    made = create(store, lake, "Names")
    with pytest.raises(ChangeStreamExists):
        create(store, lake, "NAMES")
    assert create(store, lake, "names", watch="nowhere", options={"x": 1}, if_not_exists=True) == made


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"watch": "music.nowhere"}, ChangeStreamRefused, "music.nowhere cannot be watched. No table exists at"),
        ({"watch": "music"}, ChangeStreamRefused, "music cannot be watched. "),
        ({"watch": {"music.singers": ["Age"]}}, ChangeStreamRefused, "has no column Age"),
        ({"watch": {"music.singers": ["SingerId"]}}, ChangeStreamRefused, "in the primary key"),
        ({"watch": ["music.singers", "music.singers"]}, ChangeStreamRefused, "more than once"),
        ({"watch": "music.albums"}, ChangeStreamRefused, "table music.albums has no primary key"),
        ({"watch": "ALL", "keys": {"music.albums": ["x"]}}, InvalidArgument, "has no column 'x'"),
        ({"watch": "ALL", "keys": {"music.nobody": ["x"]}}, InvalidArgument, "does not watch such a table"),
        ({"watch": "music.untracked"}, RowTrackingDisabled, "Row tracking is off on music.untracked"),
        ({"watch": "music.strange"}, UnsupportedTableFeature, "unheardOf"),
        ({"options": {"retention_period": "31d"}}, ChangeStreamRefused, "retention_period='31d'"),
        ({"options": {"keys": ["x"]}}, ChangeStreamRefused, "it has no option 'keys'"),
        ({"keys": ["Age"]}, InvalidArgument, "has no column 'Age'"),
        ({"name": "my stream"}, InvalidArgument, "READ_ and the name"),
        ({"initial_partitions": 0}, InvalidArgument, "initial_partitions=0"),
        ({"watch": 7}, InvalidArgument, "watch=7"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_nothing_is_written(
    store: ControlStore, lake: Path, arguments: dict[str, Any], error: type[TidemarkError], problem: str
) -> None:
    if "untracked" in str(arguments):
        singers(lake, "music.untracked", key="SingerId", **{"delta.enableRowTracking": "false"})
    if "strange" in str(arguments):
        singers(lake, "music.strange", key="SingerId", feature="yes")
    with pytest.raises(error) as refused:
        create(store, lake, **arguments)
    assert problem in str(refused.value)
    assert list_change_streams(store) == ()


def test_row_tracking_is_turned_on_only_where_all_else_is_right_and_its_commits_lie_behind(
    store: ControlStore, lake: Path
) -> None:
    place = singers(lake, "music.untracked", key="SingerId", **{"delta.enableRowTracking": "false"})
    asked: list[str] = []

    def turn_on(found: TableRef) -> None:
        asked.append(found.name)
        commit(place, 1, turned_on(place))

    for wrong in ({"watch": ["music.untracked", "music.albums"]}, {"watch": {"music.untracked": ["x"]}}):
        with pytest.raises(ChangeStreamRefused):
            create(store, lake, tables=tables(lake, turn_on), **wrong)
    assert asked == []
    made = create(store, lake, watch="music.untracked", tables=tables(lake, turn_on))
    assert asked == ["music.untracked"]
    assert watched(made)["music.untracked"][2] == 1


def test_for_all_takes_every_table_and_finds_those_that_come_later_from_their_first_version(
    store: ControlStore, lake: Path
) -> None:
    made = create(store, lake, watch="ALL", keys={"music.albums": ["SingerId"]})
    assert made.everything
    assert set(watched(made)) == {"music.singers", "music.albums"}
    assert find_new_tables(store, made, tables(lake)) == ()

    singers(lake, "music.concerts", key="SingerId", versions=4)
    (new,) = find_new_tables(store, made, tables(lake))
    assert (new.table.name, new.captured, new.columns, new.keys) == ("music.concerts", -1, None, ("SingerId",))
    assert find_new_tables(store, create(store, lake, "named"), tables(lake)) == ()

    again = alter(store, lake, watch="ALL")
    assert set(watched(again)) == {"music.singers", "music.albums"}, "the next capture takes it up from its beginning"


def test_for_all_is_made_and_altered_without_what_cannot_be_watched_and_says_what_that_is(
    store: ControlStore, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = singers(lake, "music.untracked", key="SingerId", **{"delta.enableRowTracking": "false"})
    singers(lake, "music.strange", key="SingerId", feature="yes")
    assert set(watched(create(store, lake, watch="ALL"))) == {"music.singers"}
    made = get_change_stream(store, "s")
    assert made.everything
    left_out = {one.name: one.why for one in tables_left_out(store, made, tables(lake))}
    assert set(left_out) == {"music.albums", "music.strange", "music.untracked"}
    assert "music.albums has no primary key" in left_out["music.albums"]
    assert "Row tracking is off" in left_out["music.untracked"]
    assert all(f"Change stream s leaves {name} out" in caplog.text for name in left_out)

    def turn_on(found: TableRef) -> None:
        commit(place, 1, turned_on(place))

    assert set(watched(alter(store, lake, watch="ALL", tables=tables(lake, turn_on)))) == {"music.singers"}
    alter(store, lake, watch="music.singers")
    assert tables_left_out(store, get_change_stream(store, "s"), tables(lake)) == ()
    again = alter(store, lake, watch="ALL", keys={"music.albums": ["SingerId"]}, tables=tables(lake, turn_on))
    assert set(watched(again)) == {"music.singers", "music.albums", "music.untracked"}


def test_a_table_that_all_watches_already_does_not_drop_out_unsaid(store: ControlStore, lake: Path) -> None:
    before = create(store, lake, watch="ALL")
    place = lake / "music" / "singers"
    lines = (place / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    protocol = next(json.loads(line) for line in lines if "protocol" in line)
    protocol["protocol"].update({"minReaderVersion": 3, "readerFeatures": ["unheardOf"]})
    commit(place, 3, protocol)
    with pytest.raises(UnsupportedTableFeature, match="unheardOf"):
        alter(store, lake, watch="ALL")
    assert get_change_stream(store, "s") == before


def test_the_log_of_a_change_stream_is_watched_by_none(store: ControlStore, lake: Path) -> None:
    create(store, lake, "other")
    log = get_change_stream(store, "other").log_path.removeprefix("file://")
    singers(Path(log).parent, Path(log).name, key="SingerId")
    for watch in (log, ["music.singers", f"delta.`{log}`"]):
        with pytest.raises(ChangeStreamRefused, match="is the log of change stream other"):
            create(store, lake, watch=watch)
    found = tables(lake)
    catalog = replace(found, names=lambda: (*found.names(), log))
    assert set(watched(create(store, lake, watch="ALL", tables=catalog))) == {"music.singers"}
    assert find_new_tables(store, get_change_stream(store, "s"), catalog) == ()


def test_statements_say_what_all_leaves_out(store: ControlStore, lake: Path) -> None:
    def run(text: str) -> str:
        statement = parse_change_stream_sql(text)
        assert statement is not None
        return run_statement(store, statement, tables=tables(lake), logs=f"file://{lake}/_tidemark/change_streams")

    made = run("CREATE CHANGE STREAM s FOR ALL")
    assert made == "Change stream s successfully created. It cannot watch, and leaves out: music.albums."
    assert run("ALTER CHANGE STREAM s SET FOR music.singers") == "Statement executed successfully."
    altered = run("ALTER CHANGE STREAM s SET FOR ALL")
    assert altered == "Statement executed successfully. It cannot watch, and leaves out: music.albums."


def turned_on(place: Path) -> Any:
    return redefined(place, **{"delta.enableRowTracking": "true"})


def redefined(place: Path, table_id: str | None = None, **properties: str) -> Any:
    """The table's first metadata under another id, or with other properties."""
    first = json.loads((place / "_delta_log" / f"{0:020d}.json").read_text().splitlines()[1])
    first["metaData"]["configuration"].update(properties)
    first["metaData"]["id"] = table_id or first["metaData"]["id"]
    return first


def test_for_all_leaves_out_what_cannot_be_watched_and_takes_the_rest(
    store: ControlStore, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = create(store, lake, watch="ALL", keys={"music.albums": ["SingerId"]})
    singers(lake, "music.nameless")
    untracked = singers(lake, "music.untracked", key="SingerId", **{"delta.enableRowTracking": "false"})
    singers(lake, "music.concerts", key="SingerId")
    left_out: list[str] = []
    assert [new.table.name for new in find_new_tables(store, made, tables(lake), left_out.append)] == ["music.concerts"]
    assert sorted(left_out) == ["music.nameless", "music.untracked"]
    assert "music.nameless has no primary key" in caplog.text

    commit(untracked, 1, turned_on(untracked))
    found = {new.table.name: new.captured for new in find_new_tables(store, made, tables(lake))}
    assert found == {"music.concerts": -1, "music.untracked": 1}, "what it had before cannot be told"


def test_for_all_watches_a_table_that_was_replaced_from_its_replacement_on(store: ControlStore, lake: Path) -> None:
    made = create(store, lake, watch="ALL")
    place = lake / "music" / "singers"
    commit(place, 3, redefined(place, "another"))
    commit(place, 4)
    (again,) = find_new_tables(store, made, tables(lake))
    assert (again.table.table_id, again.captured) == ("another", 3)
    new = singers(lake, "music.concerts", key="SingerId", versions=2)
    commit(new, 2, redefined(new, "never watched"))
    assert [(one.table.table_id, one.captured) for one in find_new_tables(store, made, tables(lake))] == [
        ("never watched", 2),
        ("another", 3),
    ]


def test_for_all_watches_a_new_table_from_where_its_row_tracking_stays_on(store: ControlStore, lake: Path) -> None:
    made = create(store, lake, watch="ALL")
    place = singers(lake, "music.concerts", key="SingerId")
    for version, enabled in enumerate(("false", "true", "true"), 1):
        commit(place, version, redefined(place, **{"delta.enableRowTracking": enabled}))
    commit(place, 4)
    (new,) = find_new_tables(store, made, tables(lake))
    assert new.captured == 2


def test_for_all_watches_an_older_table_that_gets_its_key_from_the_creation_of_the_stream_on(
    store: ControlStore, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = lake / "music" / "albums"
    made_at = (NOW - timedelta(hours=3)).timestamp()
    os.utime(place / "_delta_log" / f"{0:020d}.json", (made_at, made_at))
    for version, hours in ((1, -2), (2, 1)):
        commit(place, version, at=NOW + timedelta(hours=hours))
    made = create(store, lake, watch="ALL")
    commit(place, 3, redefined(place, **{"tidemark.primaryKey": "SingerId"}), at=NOW + timedelta(hours=2))
    (new,) = find_new_tables(store, made, tables(lake))
    assert (new.table.name, new.captured) == ("music.albums", 1)
    assert "watches music.albums after version 1; changes up to it have no record" in caplog.text


READABLE = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"columns": [("LastName", "string")]}, ()),
        ({"columns": [("SingerId", "string")]}, ()),
        ({"feature": "yes"}, (READABLE,)),
    ],
    ids=["without its key column", "with a key of other texts", "with an unknown feature"],
)
def test_for_all_watches_a_table_from_where_all_its_versions_can_be_captured(
    store: ControlStore, lake: Path, first: dict[str, Any], then: tuple[dict[str, Any], ...]
) -> None:
    made = create(store, lake, watch="ALL")
    place, like = singers(lake, "music.concerts", versions=2, **first), singers(lake, "music.like_it")
    own = DeltaLog.open(str(place)).state().table_id
    commit(place, 2, *(then or [redefined(like, own)]))
    commit(place, 3)
    commit(place, 4, redefined(like, own, **{"tidemark.primaryKey": "SingerId"}))
    found = {new.table.name: new.captured for new in find_new_tables(store, made, tables(lake))}
    assert found == {"music.concerts": 2}


def test_for_all_leaves_a_table_out_while_it_has_as_many_watchers_as_there_may_be_and_reads_no_commit_of_it(
    store: ControlStore, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two", "three"):
        create(store, lake, name, watch="music.albums", keys=["SingerId"])
    made = create(store, lake, watch="ALL")
    place, twice = lake / "music" / "albums", add("twice.parquet")
    commit(place, 1, twice, twice, redefined(place, **{"tidemark.primaryKey": "SingerId"}))
    singers(lake, "music.concerts", key="SingerId")
    (full,) = tables_left_out(store, made, tables(lake))
    assert "table music.albums is watched by 3 change streams" in full.why
    left_out: list[str] = []
    assert [new.table.name for new in find_new_tables(store, made, tables(lake), left_out.append)] == ["music.concerts"]
    assert left_out == ["music.albums"]
    assert f"leaves music.albums out. {full.why}" in caplog.text
    suspend(store, "one")
    assert tables_left_out(store, made, tables(lake)) == ()
    commit(place, 1, redefined(place, **{"tidemark.primaryKey": "SingerId"}))
    found = {new.table.name for new in find_new_tables(store, made, tables(lake))}
    assert found == {"music.albums", "music.concerts"}


def test_altering_all_while_a_capture_takes_a_table_up_keeps_that_table(store: ControlStore, lake: Path) -> None:
    create(store, lake, watch="ALL", keys={"music.albums": ["SingerId"]})
    found = tables(lake)

    def names() -> Sequence[str]:
        listed = found.names()
        singers(lake, "music.concerts", key="SingerId", versions=4)
        open_batch(
            store,
            "s",
            tables=lambda table: DeltaLog.open(table.path if isinstance(table, TableRef) else table),
            new_tables=lambda stream, lost: find_new_tables(store, stream, found),
        )
        return listed

    altered = alter(store, lake, watch="ALL", tables=replace(found, names=names))
    assert set(watched(altered)) == {"music.singers", "music.albums", "music.concerts"}


def test_altering_keeps_the_place_of_a_table_that_stays_and_begins_a_new_one_at_its_head(
    store: ControlStore, lake: Path
) -> None:
    create(store, lake, watch={"music.singers": None})
    commit(lake / "music" / "singers", 3)
    altered = alter(
        store, lake, watch={"music.singers": ["FirstName"], "music.albums": None}, keys={"music.albums": ["SingerId"]}
    )
    assert watched(altered)["music.singers"] == (("SingerId",), ("FirstName",), 2)
    assert watched(altered)["music.albums"] == (("SingerId",), None, 0)
    assert altered == alter(store, lake, watch={"music.singers": ["FirstName"], "music.albums": None})


@pytest.mark.parametrize("watch", ["ALL", {"music.singers": ["FirstName"]}])
def test_a_restarted_table_begins_at_its_head_and_keeps_its_keys_and_columns(
    store: ControlStore, lake: Path, watch: Any
) -> None:
    singers(lake, "music.albums", key="SingerId")
    create(store, lake, watch=watch)
    before = watched(get_change_stream(store, "s"))
    for table in ("singers", "albums"):
        commit(lake / "music" / table, 3 if table == "singers" else 1)
    altered = watched(alter(store, lake, restart="MUSIC.singers"))
    keys, columns, _ = before.pop("music.singers")
    assert altered.pop("music.singers") == (keys, columns, 3)
    assert altered == before
    for wrong in ("music.nobody", ["music.singers", "music.nobody"], 7, [""]):
        with pytest.raises(InvalidArgument, match="restart"):
            alter(store, lake, restart=wrong)
    with pytest.raises(InvalidArgument, match="restart"):
        alter(store, lake, watch=(), restart="music.singers")


@pytest.mark.parametrize("watch", [None, "delta.`{path}`"])
def test_a_restart_names_a_table_by_any_of_its_names(store: ControlStore, lake: Path, watch: str | None) -> None:
    create(store, lake, watch="music.albums", keys=["SingerId"])
    place = lake / "music" / "albums"
    asked = None if watch is None else watch.format(path=place)
    for version, name in enumerate((f"delta.`{place}`", str(place), "MUSIC.albums"), 1):
        commit(place, version)
        altered = alter(store, lake, watch=asked, restart=name)
        assert [(one.keys, one.captured) for one in altered.tables] == [(("SingerId",), version)]


def test_a_table_that_was_replaced_restarts_with_its_keys(store: ControlStore, lake: Path) -> None:
    create(store, lake, watch="music.albums", keys=["SingerId"])
    commit(lake / "music" / "albums", 1, redefined(lake / "music" / "albums", "another"))
    altered = alter(store, lake, restart="music.albums")
    assert [(one.table.table_id, one.keys, one.captured) for one in altered.tables] == [("another", ("SingerId",), 1)]


def test_tables_whose_names_differ_by_case_alone_restart_and_have_keys_of_their_own(
    store: ControlStore, lake: Path
) -> None:
    singers(lake, "music.ALBUMS")
    names = ["music.albums", "music.ALBUMS"]
    create(store, lake, watch=names, keys={names[0]: ["SingerId"], names[1]: ["LastName"]})
    for name in ("albums", "ALBUMS"):
        commit(lake / "music" / name, 1)
    altered = watched(alter(store, lake, restart=names[1]))
    assert altered == {names[0]: (("SingerId",), None, 0), names[1]: (("LastName",), None, 1)}


def test_a_table_that_stays_keeps_its_keys_and_one_that_restarts_may_get_others(
    store: ControlStore, lake: Path
) -> None:
    before = create(store, lake)
    for same in (["singerid"], None):
        assert alter(store, lake, watch="music.singers", keys=same) == before
    with pytest.raises(InvalidArgument, match="know rows by SingerId; to change that, name it in restart"):
        alter(store, lake, watch="music.singers", keys=["LastName"])
    altered = alter(store, lake, watch="music.singers", keys=["LastName"], restart="music.singers")
    assert watched(altered)["music.singers"][0] == ("LastName",)


def test_options_change_one_by_one_and_the_watch_list_stays(store: ControlStore, lake: Path) -> None:
    create(store, lake, options={"exclude_insert": True, "retention_period": "7d"})
    altered = alter(store, lake, options={"retention_period": None, "value_capture_type": "NEW_ROW"})
    assert altered.options.given == ("value_capture_type", "exclude_insert")
    assert (altered.options.exclude_insert, altered.options.retention.days) == (True, 1)
    assert set(watched(altered)) == {"music.singers"}


def test_an_alter_that_is_refused_changes_neither_tables_nor_options(store: ControlStore, lake: Path) -> None:
    before = create(store, lake)
    for wrong in (
        {"watch": "music.nowhere", "options": {"exclude_insert": True}},
        {"watch": "music.singers", "options": {"exclude_insert": "yes"}},
    ):
        with pytest.raises(ChangeStreamRefused):
            alter(store, lake, **wrong)
    assert get_change_stream(store, "s") == before
    with pytest.raises(ChangeStreamNotFound):
        alter(store, lake, "other", watch="music.singers")


def test_an_eleventh_stream_and_a_fourth_on_a_table_are_refused_and_a_suspended_one_counts_for_none(
    store: ControlStore, lake: Path
) -> None:
    for number in range(3):
        create(store, lake, f"s{number}")
    with pytest.raises(ChangeStreamRefused, match=r"table music\.singers is watched by 3 change streams"):
        create(store, lake, "s3")
    create(store, lake, "s3", watch=None)
    with pytest.raises(ChangeStreamRefused, match=r"table music\.singers is watched by 3 change streams"):
        alter(store, lake, "s3", watch="music.singers")
    suspend(store, "s0")
    alter(store, lake, "s3", watch="music.singers")
    for number in range(4, 10):
        create(store, lake, f"s{number}", watch=None)
    with pytest.raises(ChangeStreamRefused, match="there are 10 change streams, and 10 is the most"):
        create(store, lake, "s10", watch=None)


def test_dropping_ends_the_stream_and_removes_its_log_and_no_other(store: ControlStore, lake: Path) -> None:
    logs = [Path(create(store, lake, name).log_path.removeprefix("file://")) for name in ("mine", "other")]
    for log in logs:
        commit(log, 0)
    defining.drop(store, "MINE")
    assert [log.exists() for log in logs] == [False, True]
    with pytest.raises(ChangeStreamNotFound, match=r"These exist: other"):
        defining.drop(store, "mine")
    assert create(store, lake, "mine").log_path != f"file://{logs[0]}", "a new one shares nothing with the old"
