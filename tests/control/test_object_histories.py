"""Histories of objects: one table of what exists, walked in portions, in few queries for any number of points."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from tests.airflow.historic import Historic, copy_rows
from tests.postgresql import PostgresServer
from tidemark.control.history import drop_step
from tidemark.control.object_histories import (
    HISTORIES,
    MOST,
    WITHOUT,
    Point,
    Portion,
    Shape,
    ShownPart,
    Unit,
    history_of,
    parts_of,
)
from tidemark.control.object_kinds import KINDS, kind_named, resolved
from tidemark.control.object_list import find
from tidemark.control.samples import keep_sample, sampled
from tidemark.control.schema import samples
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument

PARTS = [(kind, part.name) for kind in HISTORIES for part in parts_of(kind)]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Historic:
    return Historic(tmp_path_factory.mktemp("historic"))


@pytest.fixture(scope="module")
def uids(world: Historic) -> dict[str, str]:
    return {
        kind: world.store.read(lambda c, k=kind, n=name: find(c, k, n, now=world.now)).uid
        for kind, name in world.named().items()
    }


@pytest.fixture(scope="module")
def on_postgresql(world: Historic, postgresql: PostgresServer, migrated_database: str) -> Iterator[ControlStore]:
    """The same rows in another database."""
    found = ControlStore(postgresql.url(postgresql.new_database(template=migrated_database)), keep_connections=True)
    copy_rows(world.store, found)
    yield found
    found.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind_named(kind).highs is not None])
def test_the_highest_lags_are_read_from_the_history_in_each_database(
    world: Historic, on_postgresql: ControlStore, uids: dict[str, str], kind: str
) -> None:
    highs = resolved(kind_named(kind).highs or "")
    told = [store.read(lambda c: highs(c, [uids[kind], "nobody"])) for store in (world.store, on_postgresql)]
    assert told[0] == told[1]
    assert set(told[0]) == {uids[kind]}


def walked(store: ControlStore, kind: str, uid: str, part: str, limit: int) -> list[Point]:
    found: list[Point] = []
    cursor: str | None = None
    while True:
        (shown,) = store.read(lambda c, at=cursor: history_of(c, kind, uid, part=part, cursor=at, limit=limit))
        assert len(shown.points) <= limit
        found += shown.points
        cursor = shown.cursor
        if cursor is None:
            return found


def test_each_kind_has_a_history_or_says_who_has_it() -> None:
    assert HISTORIES.keys() | WITHOUT.keys() == KINDS.keys()
    assert not HISTORIES.keys() & WITHOUT.keys()
    assert parts_of("landing_table") == ()


@pytest.mark.parametrize("kind", HISTORIES)
def test_charts_draw_fields_of_one_unit_that_their_part_has(kind: str) -> None:
    parts = parts_of(kind)
    assert len({part.name for part in parts}) == len(parts) > 0
    for part in parts:
        units = {field.name: field.unit for field in part.fields}
        assert len(units) == len(part.fields)
        assert units["at"] is Unit.TIME
        assert all(field.unit is Unit.TEXT for field in part.fields if field.private)
        assert len({chart.name for chart in part.charts}) == len(part.charts)
        for chart in part.charts:
            assert len({units[name] for name in chart.fields}) == 1
            assert chart.shape is not Shape.TREE or {"token", "end", "parents", "children", "state"} <= units.keys()


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_points_have_the_fields_of_their_part_the_newest_first(
    world: Historic, uids: dict[str, str], kind: str, part: str
) -> None:
    (told,) = (one for one in parts_of(kind) if one.name == part)
    points = walked(world.store, kind, uids[kind], part, MOST)
    assert points, "the world has none"
    for point in points:
        assert point.values.keys() <= {field.name for field in told.fields}
        assert tuple(map(type, point.key)) == told.key
        assert point.values["at"].tzinfo is not None
    keys = [point.key for point in points]
    assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_a_history_is_walked_in_portions_in_each_database(
    world: Historic, uids: dict[str, str], on_postgresql: ControlStore, kind: str, part: str
) -> None:
    whole = walked(world.store, kind, uids[kind], part, MOST)
    assert walked(world.store, kind, uids[kind], part, 2) == whole
    assert walked(on_postgresql, kind, uids[kind], part, 2) == whole


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_newer_portions_lead_back_to_the_newest_point_in_each_database(
    world: Historic, uids: dict[str, str], on_postgresql: ControlStore, kind: str, part: str
) -> None:
    whole = walked(world.store, kind, uids[kind], part, MOST)
    for store in (world.store, on_postgresql):
        shown = portion(store, kind, uids[kind], part, None)
        assert shown.newer is None
        while shown.cursor is not None:
            shown = portion(store, kind, uids[kind], part, shown.cursor)
        found = list(shown.points)
        while shown.newer is not None:
            shown = portion(store, kind, uids[kind], part, shown.newer)
            assert len(shown.points) <= 2
            found = [*shown.points, *found]
        assert found == whole
        assert shown.cursor is not None or len(whole) <= 2


def portion(store: ControlStore, kind: str, uid: str, part: str, cursor: str | None) -> ShownPart:
    (shown,) = store.read(lambda c: history_of(c, kind, uid, part=part, cursor=cursor, limit=2))
    return shown


@pytest.mark.parametrize("kind", ["change_stream", "consumer_group"])
def test_partitions_are_counted_in_each_database(
    world: Historic, uids: dict[str, str], on_postgresql: ControlStore, kind: str
) -> None:
    for store in (world.store, on_postgresql):
        whole = walked(store, kind, uids[kind], "partitions", MOST)
        assert portion(store, kind, uids[kind], "partitions", None).total == len(whole) == 5
    assert portion(world.store, "stream", uids["stream"], "moves", None).total is None


@pytest.mark.parametrize("kind", HISTORIES)
def test_more_points_take_no_more_queries(world: Historic, uids: dict[str, str], kind: str) -> None:
    asked: list[str] = []
    engine = world.store._engine
    note = lambda *given: asked.append(given[2])  # noqa: E731
    sa.event.listen(engine, "before_cursor_execute", note)
    counts = []
    for limit in (1, MOST):
        asked.clear()
        world.store.read(lambda c, n=limit: history_of(c, kind, uids[kind], part=None, cursor=None, limit=n))
        counts.append(len(asked))
    sa.event.remove(engine, "before_cursor_execute", note)
    few, many = counts
    assert many <= few + 1  # the children of partitions that have ended


def test_figures_are_those_of_the_runs(world: Historic, uids: dict[str, str]) -> None:
    def newest(kind: str, part: str) -> dict[str, object]:
        return dict(walked(world.store, kind, uids[kind], part, MOST)[0].values)

    consumed = walked(world.store, "stream", uids["stream"], "consumptions", MOST)
    assert (consumed[0].values["state"], consumed[0].values["rows"]) == ("open", None)
    last = consumed[1].values
    assert [last[name] for name in ("from_version", "to_version", "rows", "written")] == [21, 24, 3, 6]
    assert last["lag_seconds"] == 0
    assert len(last["targets"]) == 2
    assert newest("stream", "moves")["to_version"] == 24
    assert newest("clustered_table", "reclusterings")["error"] == "it is secret"
    capture = newest("replication", "captures")
    assert (capture["events"], capture["lag_bytes"]) == (1, 48_200_000)
    assert capture["lag_seconds"] == (3 * 60 - 4) * 60  # since the capture before it
    backfill = newest("replication", "backfills")
    assert [backfill[name] for name in ("object", "state", "rows", "expected")] == [
        "shop.customers", "open", 51_600, 120_000,
    ]  # fmt: skip
    assert newest("replicated_table", "writes")["rows"] == 3
    assert newest("materialized_view", "refreshes")["how"] is not None
    assert newest("search_optimization", "upkeeps")["read_bytes"] == 1000


def test_a_tree_of_partitions_has_parents_children_and_load(world: Historic, uids: dict[str, str]) -> None:
    points = walked(world.store, "change_stream", uids["change_stream"], "partitions", 2)
    of = {(one.values["lo"], one.values["hi"], one.values["end"] is None): one.values for one in points}
    merged, left = of[16384, 65536, True], of[0, 32768, False]
    assert (merged["state"], left["state"], left["rows"]) == ("active", "ended", 75)
    assert sorted(left["children"]) == sorted([of[0, 16384, True]["token"], of[16384, 32768, False]["token"]])
    assert sorted(merged["parents"]) == sorted([of[16384, 32768, False]["token"], of[32768, 65536, False]["token"]])
    assert merged["children"] == []
    group = walked(world.store, "consumer_group", uids["consumer_group"], "partitions", MOST)
    assert {one.values["state"] for one in group} == {"created", "failed", "finished", "running"}


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        ({"limit": 0}, "1,000"),
        ({"limit": MOST + 1}, "1,000"),
        ({"part": "nothing"}, "versions, consumptions, moves"),
        ({"cursor": "W10"}, "name the part"),
        ({"part": "moves", "cursor": "no cursor"}, "Begin without"),
        ({"part": "moves", "cursor": "WyJtb3ZlcyIsIi0xIl0"}, "Begin without"),  # a text for a number
        ({"part": "moves", "cursor": "WyJtb3ZlcyIsOTk5OTk5OTk5OTk5OTk5OTk5OTk5XQ"}, "Begin without"),  # 24 digits
        ({"part": "consumptions", "cursor": "WyJtb3ZlcyIsM10"}, "Begin without"),  # of another part
        (
            {"part": "consumptions", "cursor": "WyJjb25zdW1wdGlvbnMiLCIyMDI2LTAxLTAxIiwiYSJd"},
            "Begin without",
        ),  # no zone
    ],
)
def test_bad_wishes_are_refused(world: Historic, uids: dict[str, str], wish: dict[str, object], word: str) -> None:
    asked = {"part": None, "cursor": None, "limit": 10, **wish}
    with pytest.raises(InvalidArgument, match=word):
        world.store.read(lambda c: history_of(c, "stream", uids["stream"], **asked))  # type: ignore[arg-type]


def test_a_sample_is_kept_once_and_the_newest_of_each_object_stays(store: ControlStore) -> None:
    def keep(uid: str, minute: int, run: str) -> None:
        at = NOW + timedelta(minutes=minute)
        store.write(lambda c: keep_sample(c, "pipe", uid, at=at, run=run, figures={"rows": minute}))

    for uid in ("one", "two"):
        for minute in (1, 2, 2, 3):
            keep(uid, minute, "dag/run/load/-1")
    assert store.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(samples)).scalar_one()) == 6
    late = NOW + timedelta(days=9)
    step = store.write(lambda c: drop_step(c, "samples of objects", before=late, after=None, most=100))
    assert step.dropped == 4
    assert store.write(lambda c: drop_step(c, "samples of objects", before=late, after=None, most=100)).dropped == 0
    (kept,) = store.read(lambda c: sampled(c, "pipe", "one", Portion(None, 10)))
    assert (kept.values["rows"], kept.values["at"]) == (3, NOW + timedelta(minutes=3))
