"""Search optimization in the control store: each move once, and the table of objects beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.control.kept_objects import drifted, rows_of
from tests.unit.search.tables import METADATA
from tidemark.control.history import drop_step
from tidemark.control.store import ControlStore
from tidemark.errors import SearchNotFound, TableNotFound
from tidemark.model.streams import Addressing, TableRef
from tidemark.search.model.jobs import KeepReport, Kept, UpkeepMark
from tidemark.search.model.paths import Search
from tidemark.search.planning.sql import parse_targets
from tidemark.search.store import searches
from tidemark.search.worker.definitions import (
    add_search,
    drop_again,
    drop_search,
    find_search,
    list_searches,
    path_to_drop,
    search_history,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TABLE = TableRef("shop.orders", "file:///lake/shop/orders", "id-1", Addressing.LAKE)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[ControlStore]:
    made = ControlStore(request.getfixturevalue(f"{request.param}_store"), clock=lambda: NOW)
    yield made
    assert drifted(made) == []
    made.close()


def added(store: ControlStore, on: str = "EQUALITY(id)") -> Search:
    return add_search(store, TABLE, METADATA, parse_targets(on), by="dag/run/add/-1")


def commit(search: Search, version: int) -> Kept:
    mark = UpkeepMark(search.app_id, 5, 3, 1000, version == 1, NOW - timedelta(seconds=9))
    return Kept(version, mark, 300, 2400, NOW + timedelta(seconds=version))


def note(
    store: ControlStore, search: Search, *, base: int, problem: str | None = None, table_id: str = TABLE.table_id
) -> bool:
    report = KeepReport(2, 3, 300, 2400, problem)
    ids = [path.id for path in search.stored_paths]
    moved: bool = store.write(
        lambda connection: searches.note_kept(
            connection,
            search,
            base_version=base,
            table_id=table_id,
            ids=ids,
            report=report,
            at=NOW,
            by="dag/run/keep/-1",
        )
    )
    return moved


def test_paths_are_added_once_and_dropped_one_by_one(store: ControlStore) -> None:
    search = added(store)
    assert added(store) == search
    both = added(store, "EQUALITY(id), SUBSTRING(short)")
    assert [(path.id, path.said) for path in both.paths] == [(1, "EQUALITY(id)"), (2, "SUBSTRING(short)")]
    assert (both.uid, both.location) == (search.uid, "file:///lake/shop/orders__search")
    left = drop_search(store, TABLE.path, TABLE.name, parse_targets("EQUALITY(id)"), by="me")
    assert left is not None
    assert [path.id for path in left.paths] == [2]
    assert drop_search(store, TABLE.path, TABLE.name, parse_targets("SUBSTRING(short)"), by="me") is None
    assert (find_search(store, TABLE.path), list_searches(store)) == (None, ())
    with pytest.raises(SearchNotFound):
        drop_search(store, TABLE.path, TABLE.name, (), by="me")
    assert added(store).uid != search.uid


def test_a_task_that_drops_paths_again_changes_nothing(store: ControlStore) -> None:
    search = added(store, "EQUALITY(id), SUBSTRING(short), EQUALITY(n)")
    on = parse_targets("EQUALITY(id), SUBSTRING(short)")
    left, gone = drop_again(store, TABLE.path, TABLE.name, on, by="me")
    assert left is not None
    assert ([path.said for path in left.paths], gone) == (["EQUALITY(n)"], ())
    assert drop_again(store, TABLE.path, TABLE.name, on, by="me") == (left, on)
    rest, gone = drop_again(store, TABLE.path, TABLE.name, parse_targets("EQUALITY(id, n)"), by="me")
    assert (rest, [target.said for target in gone]) == (None, ["EQUALITY(id)"])
    assert drop_again(store, TABLE.path, TABLE.name, (), by="me") == (None, ())
    assert find_search(store, TABLE.path) is None
    assert search.uid != added(store).uid


def test_a_table_that_is_gone_is_found_for_a_drop_by_its_path_or_its_name(store: ControlStore) -> None:
    def gone(name: str) -> str:
        raise TableNotFound(path=name)

    added(store)
    assert path_to_drop(store, TABLE.path, TABLE.path, gone) == TABLE.path
    assert path_to_drop(store, "SHOP.orders", "file:///elsewhere", gone) == TABLE.path
    assert path_to_drop(store, "shop.orders", None, lambda _: "file:///found") == "file:///found"
    with pytest.raises(TableNotFound):
        path_to_drop(store, "shop.others", "file:///lake/shop/others", gone)
    same_name = replace(TABLE, path="file:///lake2/shop/orders", table_id="id-2")
    add_search(store, same_name, METADATA, parse_targets("EQUALITY(id)"), by="me")
    with pytest.raises(TableNotFound):
        path_to_drop(store, TABLE.name, None, gone)


def test_paths_that_somebody_else_has_changed_are_not_overwritten(store: ControlStore) -> None:
    stale = added(store)
    added(store, "SUBSTRING(short)")
    moved = store.write(lambda connection: searches.set_paths(connection, stale, (), 9, by="me"))
    assert moved is False
    assert len(list_searches(store)[0].paths) == 2


def test_an_upkeep_is_noted_with_its_commits_once(store: ControlStore) -> None:
    search = added(store)
    assert rows_of(store)["search_optimization shop.orders"]["state"] == "building"
    commits = [commit(search, 1), commit(search, 2)]
    for _ in range(2):
        store.write(lambda connection: searches.keep_commits(connection, search, commits, run="r"))
    assert note(store, search, base=5)
    assert not note(store, search, base=4)  # a slower run that ended later
    kept = list_searches(store)[0]
    assert (kept.kept_version, kept.kept_ids, kept.files, kept.size, kept.problem) == (5, (1,), 3, 2400, None)
    assert rows_of(store)["search_optimization shop.orders"]["state"] == "active"
    assert note(store, kept, base=1, table_id="id-2")  # another table in the same place
    assert list_searches(store)[0].table.table_id == "id-2"
    history = search_history(store, kept)
    assert [(one.version, one.mark.files, one.seconds) for one in history] == [(2, 3, 11.0), (1, 3, 10.0)]


def test_old_commits_of_an_upkeep_are_forgotten_but_for_the_newest(sqlite_store: str) -> None:
    store = ControlStore(sqlite_store, clock=lambda: NOW)
    search = added(store)
    commits = [commit(search, 1), commit(search, 2)]
    store.write(lambda connection: searches.keep_commits(connection, search, commits, run="r"))
    later = NOW + timedelta(days=1)
    drop = lambda connection: drop_step(connection, "upkeep of search paths", before=later, after=None, most=10)  # noqa: E731
    assert [store.write(drop).dropped for _ in range(2)] == [1, 0]
    assert [one.version for one in search_history(store, search)] == [2]
    store.close()


def test_a_problem_is_shown_until_an_upkeep_ends_without_one(store: ControlStore) -> None:
    search = added(store)
    store.write(lambda connection: searches.note_problem(connection, search, problem="it broke", at=NOW, by="d/r/t/-1"))
    row = rows_of(store)["search_optimization shop.orders"]
    assert (row["state"], row["severity"], row["problem"]) == ("failing", "warning", "it broke")
    assert note(store, search, base=1, problem="EQUALITY(id): the column is gone")
    assert list_searches(store)[0].problem == "EQUALITY(id): the column is gone"
    assert note(store, search, base=2)
    assert list_searches(store)[0].problem is None
