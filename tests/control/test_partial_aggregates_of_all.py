"""FOR ALL passes over the partial aggregates of views, and over no table of a user."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.control.test_change_stream_definitions import NOW, alter, create, tables, watched
from tests.unit.lake.delta_directories import singers
from tidemark.change_streams.worker.definitions import get_change_stream
from tidemark.change_streams.worker.watching import find_new_tables, tables_left_out
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.lake.tables import table_ref
from tidemark.materialized.model.definitions import KeptKind, KeptView
from tidemark.materialized.planning.shape import rows_shape
from tidemark.materialized.store import views
from tidemark.model.views import ViewQuery

OWN = "music.totals__partials"
OF_USERS = {"music.copied__partials", "music.rows__partials", "music.singers"}


@pytest.fixture
def store(tmp_path: Path) -> ControlStore:
    made = ControlStore(f"sqlite:///{tmp_path}/control.db", clock=lambda: NOW)
    made.migrate()
    return made


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Tables with that suffix and a key: that of the view, a copy with its properties, and one that is a whole view."""
    root = tmp_path / "lake"
    singers(root, "music.singers", key="SingerId")
    for name in (OWN, "music.copied__partials", "music.rows__partials"):
        singers(root, name, key="SingerId", **{"tidemark.keptView": "music.totals"})
    return root


@pytest.fixture(autouse=True)
def totals(store: ControlStore, lake: Path) -> KeptView:
    """`music.totals` keeps partial aggregates; `music.rows__partials` keeps its rows."""
    kept_view(store, lake, "music.rows__partials", "music.rows__partials")
    return kept_view(store, lake, "music.totals", OWN)


def kept_view(store: ControlStore, lake: Path, name: str, kept: str) -> KeptView:
    shape = rows_shape(ViewQuery(name, "SELECT 1 AS id", '{"fields": []}', (), {}, "digest", {}))
    table, kind = table_ref(kept, str(lake)), KeptKind.MATERIALIZED_VIEW
    view = KeptView(f"uid of {name}", name, kind, "SELECT 1", table, shape, f"stream of {name}", NOW)
    store.write(lambda connection: views.create_view(connection, view, by="me"))
    return view


def drop(store: ControlStore, view: KeptView) -> None:
    store.write(lambda connection: views.end_view(connection, view, at=NOW, by="me"))


def test_partial_aggregates_are_passed_over_without_a_word(
    store: ControlStore, lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert set(watched(create(store, lake, watch="ALL"))) == OF_USERS
    assert set(watched(alter(store, lake, watch="ALL"))) == OF_USERS
    made = get_change_stream(store, "s")
    assert (find_new_tables(store, made, tables(lake)), tables_left_out(store, made, tables(lake))) == ((), ())
    assert OWN not in caplog.text


def test_partial_aggregates_of_a_dropped_view_are_passed_over(
    store: ControlStore, lake: Path, totals: KeptView
) -> None:
    drop(store, totals)
    made = create(store, lake, watch="ALL", tables=replace(tables(lake), names=lambda: ["music.singers"]))
    assert {one.table.name for one in find_new_tables(store, made, tables(lake))} == OF_USERS - {"music.singers"}


def test_they_are_watched_by_name_and_stay_so(store: ControlStore, lake: Path) -> None:
    assert set(watched(create(store, lake, watch=OWN))) == {OWN}
    assert set(watched(alter(store, lake, watch="ALL"))) == {*OF_USERS, OWN}


def test_they_take_no_keys_for_all(store: ControlStore, lake: Path) -> None:
    with pytest.raises(InvalidArgument, match="does not watch such a table"):
        create(store, lake, watch="ALL", keys={OWN: "SingerId"})


def test_a_users_table_in_their_place_is_watched(store: ControlStore, lake: Path, totals: KeptView) -> None:
    """The view was dropped, and so was its table."""
    drop(store, totals)
    shutil.rmtree(lake / "music" / "totals__partials")
    singers(lake, "music.new")
    singers(lake, OWN, key="SingerId")
    assert set(watched(create(store, lake, watch="ALL"))) == {*OF_USERS, OWN}
