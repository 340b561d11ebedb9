"""Acts on change streams: what a page offers does what the commands do, and is in the history. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.change_stream_model import Clock
from tests.control.kept_objects import drifted
from tests.unit.lake.delta_directories import singers
from tidemark.change_streams.worker import defining
from tidemark.change_streams.worker.definitions import get_change_stream
from tidemark.change_streams.worker.groups import create_group, group_status, list_groups
from tidemark.change_streams.worker.watching import LakeTables
from tidemark.control.object_acts import Act, ActTools, DoneAct, act_on, newest_acts, offered_now
from tidemark.control.object_list import find
from tidemark.control.objects import touch
from tidemark.control.store import ControlStore
from tidemark.errors import ActFieldsInvalid, ChangeStreamNotFound, ChangeStreamRefused, InvalidArgument
from tidemark.lake.listing import table_names
from tidemark.lake.tables import table_ref
from tidemark.streams.worker.opening import open_table


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """One table with versions 0 to 2, and no key of its own."""
    singers(tmp_path / "lake", "music.singers", versions=3)
    return tmp_path / "lake"


@pytest.fixture
def tools(lake: Path) -> ActTools:
    known = LakeTables(lambda name: table_ref(name, str(lake)), open_table, lambda: table_names(str(lake)))
    return ActTools(open_table, lake=known)


@pytest.fixture
def store(copied_store: ControlStore, lake: Path, tools: ActTools) -> Iterator[ControlStore]:
    """With the change stream `s` of that table."""
    copied_store.clock = Clock()
    logs = f"{lake.as_uri()}/_tidemark/change_streams"
    key = {"music.singers": "SingerId"}
    defining.create(copied_store, "s", watch="music.singers", keys=key, options={}, tables=tools.lake, logs=logs)
    yield copied_store
    assert drifted(copied_store) == []


def offers(store: ControlStore, group: str | None = None) -> tuple[list[str], Act]:
    """The names of the acts on the change stream, or on a group of it, and a wish for none of them."""
    kind = "change_stream" if group is None else "consumer_group"
    uid = get_change_stream(store, "s").uid if group is None else group_status(store, "s", group).group.uid
    found = store.read(lambda connection: offered_now(connection, kind, uid, store.clock()))
    return [one.name for one in found.acts], Act(kind, uid, "", found.revision, "ann", "the night")


def do(store: ControlStore, tools: ActTools, act: str, group: str | None = None, **values: object) -> None:
    _, wish = offers(store, group)
    act_on(store, tools, Act(wish.kind, wish.uid, act, wish.revision, wish.who, wish.why, values))


def history(store: ControlStore) -> tuple[DoneAct, ...]:
    return store.read(lambda connection: newest_acts(connection, kind=None, uid=None, limit=9))


def test_a_change_stream_is_suspended_and_watches_again_from_the_newest_version(
    store: ControlStore, tools: ActTools
) -> None:
    assert offers(store)[0] == ["suspend", "drop"]
    do(store, tools, "suspend")
    assert get_change_stream(store, "s").tables == ()
    assert offers(store)[0] == ["resume", "drop"]
    do(store, tools, "resume", tables=["music.singers"], keys=["SingerId"])
    (again,) = get_change_stream(store, "s").tables
    assert (again.table.name, again.keys, again.captured) == ("music.singers", ("SingerId",), 2)
    newest, oldest = history(store)
    assert [(one.act, one.who, one.why) for one in (newest, oldest)] == [
        ("resume", "ann", "the night"),
        ("suspend", "ann", "the night"),
    ]
    assert newest.values == {"tables": ["music.singers"], "keys": ["SingerId"]}


def test_a_suspended_change_stream_may_watch_all(store: ControlStore, tools: ActTools) -> None:
    do(store, tools, "suspend")
    do(store, tools, "resume", tables=["all"])
    assert get_change_stream(store, "s").everything


def test_nothing_is_resumed_without_a_table_or_with_one_that_is_not_there(store: ControlStore, tools: ActTools) -> None:
    do(store, tools, "suspend")
    with pytest.raises(ActFieldsInvalid, match="tables: it is required"):
        do(store, tools, "resume")
    with pytest.raises(ChangeStreamRefused, match=r"music\.gone cannot be watched"):
        do(store, tools, "resume", tables=["music.gone"], keys=["SingerId"])
    assert get_change_stream(store, "s").tables == ()
    assert [one.act for one in history(store)] == ["suspend"]


def test_a_change_stream_is_dropped_with_its_records(store: ControlStore, tools: ActTools) -> None:
    records = Path(get_change_stream(store, "s").log_path.removeprefix("file://"))
    (records / "_delta_log").mkdir(parents=True)
    do(store, tools, "drop")
    with pytest.raises(ChangeStreamNotFound):
        get_change_stream(store, "s")
    assert not records.exists()
    assert [one.act for one in history(store)] == ["drop"]


def test_a_group_that_a_person_resets_stays_that_of_its_dag(store: ControlStore, tools: ActTools) -> None:
    first = create_group(store, "s", "g", "now")
    store.write(lambda connection: touch(connection, "consumer_group", [first.uid], by="mirror/r/t/-1"))
    do(store, tools, "reset", "g", start="earliest")
    again = store.read(lambda connection: find(connection, "consumer_group", "s/g", now=store.clock()))
    assert (again.uid != first.uid, again.owner_dag) == (True, "mirror")
    do(store, tools, "drop", "g")
    new = create_group(store, "s", "g", "now")
    assert store.read(lambda c: find(c, "consumer_group", new.uid, now=store.clock())).owner_dag is None


def test_a_group_is_reset_and_dropped(store: ControlStore, tools: ActTools) -> None:
    first = create_group(store, "s", "g", "now")
    assert offers(store, "g")[0] == ["pause", "reset", "drop"]
    with pytest.raises(InvalidArgument):
        do(store, tools, "reset", "g", start="yesterday")
    do(store, tools, "reset", "g", start="earliest")
    assert group_status(store, "s", "g").group.uid != first.uid
    do(store, tools, "drop", "g")
    assert list_groups(store, "s") == ()
    assert [one.act for one in history(store)] == ["drop", "reset"]
