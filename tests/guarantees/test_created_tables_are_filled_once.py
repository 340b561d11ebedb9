"""CREATE TABLE … AS SELECT … FROM a stream in tasks: whoever dies where, the table is filled by one window, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tiers import some
from tidemark.errors import StreamLocked, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import PlannedWrite, WriteAs
from tidemark.streams.planning.stream_sql.tables import CREATED_FOR, CreatedTable, created_table
from tidemark.streams.worker.created_tables import CreatingRun, create_and_consume
from tidemark.streams.worker.outcomes import Consumed

from .drivers import WorkerDied
from .synthetic_tables import SyntheticTable
from .world import LONG, SHORT, World, key_of

Step = Callable[[], object]


def statement() -> CreatedTable:
    found = created_table("CREATE TABLE kept AS SELECT id FROM s")
    assert found is not None
    return found


def uri_of(world: World) -> str:
    return f"file://{world.root}/kept"


def made(world: World, created_for: str) -> SyntheticTable:
    table = SyntheticTable(world.root / "kept", {CREATED_FOR: created_for})
    world.by_uri[table.uri] = table
    return table


def writes_of(world: World) -> tuple[PlannedWrite, ...]:
    return (PlannedWrite(WriteAs.APPEND, uri_of(world), source="s"),)


def run(
    world: World,
    name: str,
    *,
    instead_of_creation: Step | None = None,
    before_begin: Step = lambda: None,
) -> Consumed | None:
    """A run of the statement."""

    def writes() -> tuple[PlannedWrite, ...]:
        before_begin()
        return writes_of(world)

    creation = instead_of_creation or (lambda: made(world, statement().created_for))
    return create_and_consume(
        world.runtime,
        CreatingRun(statement(), lambda: DeltaLog.open(uri_of(world)), creation, writes),
        key=key_of(name),
        streams=("s",),
        owner=f"worker of {name}",
    )


def delivered(world: World, name: str) -> tuple[int, int]:
    """The window that a run says it has."""
    consumed = run(world, name)
    assert consumed is not None
    (window,) = consumed.result.windows
    return window.from_version, window.to_version


def holds(world: World) -> list[int]:
    return sorted(
        version for (_, version), times in world.by_uri[uri_of(world)].contents().items() for _ in range(times)
    )


def killed(world: World, name: str, *, after: int) -> None:
    """A run whose worker is killed when its driver has made as many steps; with the second the table is written."""
    made(world, statement().created_for)
    world.zombie(world.open(name, writes_of(world)), after)


def test_a_table_is_created_and_filled_once_and_no_other_run_moves_the_stream(world: World) -> None:
    world.source.append()
    assert delivered(world, "one") == (0, 1)
    world.source.append()
    assert delivered(world, "one") == (0, 1)
    assert run(world, "two") is None
    assert (holds(world), world.offset()) == ([1], 1)


@pytest.mark.parametrize("after", some([0, 1, 2, 3], now=[0, 2]))
def test_a_killed_run_is_finished_by_its_next_attempt_or_by_another_run(world: World, after: int) -> None:
    world.source.append()
    killed(world, "one", after=after)
    world.source.append()
    with pytest.raises(StreamLocked):
        run(world, "two")
    world.clock.go(LONG)
    assert delivered(world, "two") == (0, 1)
    assert delivered(world, "two") == (0, 1)
    assert delivered(world, "one") == (0, 1)
    assert run(world, "three") is None
    assert (holds(world), world.offset()) == ([1], 1)


@pytest.mark.parametrize("after", some([0, 2], now=[2]))
def test_a_killed_attempt_is_continued_with_its_own_window(world: World, after: int) -> None:
    world.source.append()
    killed(world, "one", after=after)
    world.source.append()
    world.clock.go(LONG)
    assert delivered(world, "one") == (0, 1)
    assert (holds(world), world.offset()) == ([1], 1)


def test_a_table_that_was_left_empty_is_filled_by_the_next_run(world: World) -> None:
    def dying() -> None:
        raise WorkerDied

    world.source.append()
    with pytest.raises(WorkerDied):
        run(world, "one", before_begin=dying)
    assert (holds(world), world.offset()) == ([], 0)
    world.clock.go(SHORT)
    assert delivered(world, "two") == (0, 1)
    assert holds(world) == [1]


@pytest.mark.parametrize("created_for", [None, "another statement"])
def test_a_table_of_somebody_else_is_not_touched(world: World, created_for: str | None) -> None:
    world.source.append()
    table = made(world, created_for or statement().created_for)
    if created_for is None:
        table.append()
    head = table.head()
    assert run(world, "one") is None
    assert (table.head(), world.offset()) == (head, 0)


@pytest.mark.parametrize("when", ["instead_of_creation", "before_begin"])
def test_of_two_runs_at_once_one_fills_the_table_and_the_other_takes_nothing(world: World, when: str) -> None:
    def quicker() -> None:
        assert delivered(world, "two") == (0, 1)
        world.source.append()

    world.source.append()
    assert run(world, "one", **{when: quicker}) is None  # type: ignore[arg-type]
    assert (holds(world), world.offset()) == ([1], 1)
    world.consume("three", 0)
    assert world.holds(0) == {2: 1}


def test_a_creation_that_fails_moves_nothing(world: World) -> None:
    def refused() -> None:
        raise TableNotFound(path="/shop/orders")

    world.source.append()
    with pytest.raises(TableNotFound):
        run(world, "one", instead_of_creation=refused)
    assert world.offset() == 0
    assert delivered(world, "one") == (0, 1)
