"""A stream on a view has a place in each base table; all of them move together, by commits in their order."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.guarantees.world import World
from tidemark.errors import InvalidArgument, SourceRecreated
from tidemark.model.streams import BaseOffset, StreamMode, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.worker.has_data import has_data
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.status import status_of
from tidemark.streams.worker.streams import advance_stream, create_stream, get_stream

BOTH = ("source", "other")


@pytest.fixture
def two(world: World) -> World:
    """The stream `v` on a view of the tables `source` and `other`, both at version 0."""
    query = ViewQuery(name="v", text="…", schema_json="{}", bases=BOTH, settings={}, digest="d1")
    for name in BOTH:
        world.sources[name].set_time(0, world.clock.now.timestamp() - 3600)
    tables = [TableRef(name, world.sources[name].uri, world.sources[name].table_id) for name in BOTH]
    create_stream(
        world.store,
        name="v",
        source=TableRef("v", "", query.digest),
        mode=StreamMode.STANDARD,
        at_version=0,
        who="test",
        view=query,
        view_bases=[BaseOffset(table, 0) for table in tables],
    )
    return world


def append(world: World, *tables: str) -> None:
    """A row into each, a minute apart."""
    for number, name in enumerate(tables):
        table = world.sources[name]
        table.set_time(table.append(), world.clock.now.timestamp() + 60 * number)


def places(world: World) -> list[int]:
    return [base.version for base in get_stream(world.store, "v").bases]


def take(world: World, run: str, **how: object) -> list[tuple[int, int]]:
    """The windows that a run takes of each table, once it has committed."""
    transaction = world.open(run, streams=("v",), **how)
    world.finish(transaction)
    (window,) = transaction.windows
    assert (window.start, window.end) == (sum(b.start for b in window.bases), sum(b.end for b in window.bases))
    return [(base.start, base.end) for base in window.bases]


def test_all_places_move_together_to_the_heads(two: World) -> None:
    append(two, "source", "other", "other")
    assert take(two, "one") == [(0, 1), (0, 2)]
    assert (places(two), two.offset("v")) == ([1, 2], 3)


def test_a_window_of_one_tables_changes_leaves_the_other_place(two: World) -> None:
    append(two, "other")
    assert take(two, "one") == [(0, 0), (0, 1)]
    assert places(two) == [0, 1]


def test_commits_are_bounded_over_all_tables_in_their_order(two: World) -> None:
    append(two, "source", "other", "source", "source", "other")
    assert take(two, "one", bound=Bound(max_commits=3)) == [(0, 2), (0, 1)]
    assert take(two, "two", bound=Bound(max_commits=3)) == [(2, 3), (1, 2)]


def test_time_bounds_every_table(two: World) -> None:
    append(two, "source", "other", "source")
    assert take(two, "one", bound=Bound(until=two.clock.now + timedelta(seconds=90))) == [(0, 1), (0, 1)]


def test_a_table_that_is_recreated_is_named_and_nothing_moves(two: World) -> None:
    append(two, "source")
    two.sources["other"].recreate()
    with pytest.raises(SourceRecreated, match="other"):
        two.begin("one", streams=("v",))
    assert places(two) == [0, 0]


def test_has_data_asks_every_table(two: World) -> None:
    assert not has_data(two.store, "v")
    append(two, "other")
    assert has_data(two.store, "v")


def test_lag_is_that_of_all_tables(two: World) -> None:
    append(two, "source", "other", "other")
    status = status_of(get_stream(two.store, "v"), open_table)
    assert (status.head, status.behind, status.problem) == (3, 3, None)


def test_no_place_is_set_back_by_an_advance(two: World) -> None:
    append(two, "source", "other", "other")
    take(two, "one")
    bases = get_stream(two.store, "v").bases
    back = [BaseOffset(bases[0].table, 5), BaseOffset(bases[1].table, 0)]
    with pytest.raises(InvalidArgument, match="never moves back"):
        advance_stream(two.store, "v", 5, "ann", "why not", bases=back)
    with pytest.raises(InvalidArgument, match="each of its 2 base tables"):
        advance_stream(two.store, "v", 5, "ann", "why not")
    assert places(two) == [1, 2]
