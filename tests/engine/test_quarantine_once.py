"""Target and quarantine see one split of the window, whatever happens between their two statements."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.engine.quarantine_world import World, world
from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import ConstraintViolated, JobFailed, SplitUnreadable, TargetRewound
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.redo import redo
from tidemark.streams.worker.replan import replan
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.submit import submit

pytestmark = pytest.mark.spark
__all__ = ["world"]

ROWS = [(1, 1), (2, 2), (3, -3)]
KEY = TransactionKey("dag", "one", "consume")
KEEP_NOTHING = "'delta.deletedFileRetentionDuration' = 'interval 0 hours'"
DEFAULTS = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"


@pytest.fixture
def half_done(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The target has its rows, the quarantine has not: the attempt died between the two statements."""
    world.source().target("id INT, v INT", "v > 0")
    world.sql("INSERT INTO {orders} VALUES (1, 1), (2, 2), (3, -3)")
    die_at(world, monkeypatch, "write2.before")
    assert (world.rows(), world.rows("bad")) == ([(1, 1), (2, 2)], [])
    return world


def die_at(world: World, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def failpoint(passed: str) -> None:
        if passed == point:
            raise RuntimeError(f"died at {point}")

    with monkeypatch.context() as dying:
        dying.setattr("tidemark.delivery.driver.exactly_once.failpoint", failpoint)
        with pytest.raises(JobFailed, match="died at"):
            world.finish(world.begin("one"))
    rollback(world.lake._context.store, KEY)


def everything(world: World) -> list[tuple[Any, ...]]:
    return sorted(world.rows() + world.rows("bad", ["id", "v"]))


def test_a_retry_finishes_and_tells_the_same_number(half_done: World) -> None:
    done = half_done.finish(half_done.begin("one"))
    assert (half_done.rows(), half_done.bad()) == ([(1, 1), (2, 2)], [(3, -3, ["CHECK c0"])])
    again = half_done.consume("one")
    assert (done.rows, done.quarantined) == (again.rows, again.quarantined) == (2, 1)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE {target} DROP CONSTRAINT c0",
        "ALTER TABLE {target} ADD CONSTRAINT late CHECK (id <> 2)",
    ],
)
def test_constraints_that_change_between_the_statements_neither_lose_nor_double_a_row(
    half_done: World, change: str
) -> None:
    half_done.sql("DELETE FROM {target} WHERE id = 2", change)  # a constraint is added only where all rows keep it
    half_done.finish(half_done.begin("one"))
    assert (half_done.rows(), half_done.bad()) == ([(1, 1)], [(3, -3, ["CHECK c0"])])


@pytest.mark.parametrize(
    ("more", "check"),
    [
        ("", "v < current_timestamp()"),
        ("", "v < TIMESTAMP'now'"),
        (", got TIMESTAMP DEFAULT current_timestamp()", "v < got"),
    ],
)
def test_the_present_is_that_of_the_attempt_that_wrote_the_target(
    world: World, monkeypatch: pytest.MonkeyPatch, more: str, check: str
) -> None:
    """A row that has become good since is still one that the target did not take."""
    world.source("id INT, v TIMESTAMP").target(f"id INT, v TIMESTAMP{more}", check, properties=DEFAULTS)
    ago = "now() - make_interval(0, 0, 0, 0, h)"
    world.sql(f"INSERT INTO {{orders}} SELECT id, {ago} FROM VALUES (1, 3), (2, 1) AS t(id, h)")
    with monkeypatch.context() as earlier:
        earlier.setattr("tidemark.jobs.run.utc_now", lambda: datetime.now(UTC) - timedelta(hours=2))
        die_at(world, monkeypatch, "write2.before")
    assert world.rows(columns=["id"]) == [(1,)]
    world.finish(world.begin("one"))
    assert (world.rows(columns=["id"]), world.bad("id")) == ([(1,)], [(2, ["CHECK c0"])])


def test_a_driver_that_outlives_its_worker_and_saw_other_constraints_is_followed(world: World) -> None:
    """The second driver sorts by new constraints; the first one has written meanwhile: the second follows it."""
    world.source().target("id INT, v INT", "v > 0")
    world.sql("INSERT INTO {orders} VALUES (1, 1), (2, 2), (3, -3)")
    opened = world.begin("one")
    context = world.lake._context

    def overtaken(spec: JobSpec) -> JobResult:
        from tidemark.streams.driver.quarantine import Quarantine

        prepare: Callable[[Quarantine], Any] = Quarantine.prepare_quarantine

        def prepared_late(self: Quarantine) -> Any:
            ready = prepare(self)
            Quarantine.prepare_quarantine = prepare  # type: ignore[method-assign]
            world.sql("ALTER TABLE {target} DROP CONSTRAINT c0")
            assert context.run(spec).error is None  # the other driver, from beginning to end
            return ready

        Quarantine.prepare_quarantine = prepared_late  # type: ignore[method-assign]
        return context.run(spec)

    evidence = submit(Runtime(context.store, run=overtaken, paths=context.paths), opened.transaction)
    assert [one.found for one in evidence] == [True, True]
    assert (everything(world), world.rows("bad")) == (sorted(ROWS), [])


def test_a_target_that_was_rewound_gets_the_rows_that_are_not_in_quarantine(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.source().target("id INT, v INT", "v > 0")
    before = world.log("target").head()
    world.sql("INSERT INTO {orders} VALUES (1, 1), (2, 2), (3, -3)")
    die_at(world, monkeypatch, "write2.after")
    assert everything(world) == ROWS
    world.sql(f"RESTORE TABLE {{target}} TO VERSION AS OF {before}", "ALTER TABLE {target} DROP CONSTRAINT c0")
    with pytest.raises(TargetRewound):
        world.finish(world.begin("one"))
    rollback(world.lake._context.store, KEY)
    redo(world.lake._context.store, KEY, tables=world.lake._context.tables)
    world.finish(world.begin("one"))
    assert (world.rows(), world.bad()) == ([(1, 1), (2, 2)], [(3, -3, ["CHECK c0"])])


def replanned(world: World) -> TransactionState:
    context = world.lake._context
    return replan(context.runtime, KEY).state


def test_a_plan_whose_target_has_its_part_is_finished_with_its_quarantine(half_done: World) -> None:
    assert replanned(half_done) is TransactionState.OPEN
    half_done.finish(half_done.begin("one"))
    assert (everything(half_done), len(half_done.rows("bad"))) == (sorted(ROWS), 1)


def test_a_plan_of_which_nothing_is_written_is_released_and_planned_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.source().target("id INT, v INT", "v > 0")
    world.sql("INSERT INTO {orders} VALUES (1, 1), (2, 2), (3, -3)")
    die_at(world, monkeypatch, "write1.before")
    assert replanned(world) not in (TransactionState.OPEN, TransactionState.COMMITTED)
    assert (world.rows(), world.rows("bad")) == ([], [])
    world.sql("ALTER TABLE {target} ADD CONSTRAINT late CHECK (id <> 2)")
    world.finish(world.begin("one"))
    assert (world.rows(), world.bad()) == ([(1, 1)], [(2, 2, ["CHECK late"]), (3, -3, ["CHECK c0"])])


def test_another_run_takes_over_and_the_quarantine_names_the_run_whose_window_it_was(half_done: World) -> None:
    half_done.sql("INSERT INTO {orders} VALUES (4, -4)")
    half_done.consume("two")
    runs = half_done.rows("bad", ["id", "`QUARANTINE$RUN`"])
    assert runs == [(3, "dag/one/consume/-1"), (4, "dag/two/consume/-1")]


@pytest.fixture
def half_merged(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A merge that died between its statements; its constraint asks for a column that the stream does not bring."""
    world.source().target("id INT, v INT, w INT", "v + w > 0")
    world.sql("INSERT INTO {target} VALUES (1, 1, 5), (2, 8, -5)", "INSERT INTO {orders} VALUES (1, 2), (2, 2)")
    monkeypatch.setattr(world, "writes", partial(world.writes, "id"))
    die_at(world, monkeypatch, "write2.before")
    assert (world.rows(), world.rows("bad")) == ([(1, 2, 5), (2, 8, -5)], [])
    world.sql("UPDATE {target} SET w = 50", f"ALTER TABLE {{target}} SET TBLPROPERTIES ({KEEP_NOTHING})")
    return world


def test_what_the_target_had_is_read_past_the_time_for_which_it_keeps_removed_files(half_merged: World) -> None:
    half_merged.finish(half_merged.begin("one"))
    assert (half_merged.rows(), half_merged.bad()) == ([(1, 2, 50), (2, 8, 50)], [(2, 2, ["CHECK c0"])])


def test_what_the_target_had_and_vacuum_took_is_named_and_a_target_that_is_replaced_is_sorted_for_anew(
    half_merged: World,
) -> None:
    session = half_merged.spark.newSession()
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.sql(f"VACUUM {half_merged.name('target')} RETAIN 0 HOURS")
    with pytest.raises(SplitUnreadable, match=r"target at version 2, .*airflow tidemark streams redo") as raised:
        half_merged.finish(half_merged.begin("one"))
    assert raised.value.facts["first"].endswith(".parquet")
    rollback(half_merged.lake._context.store, KEY)
    half_merged.sql("CREATE OR REPLACE TABLE {target} USING delta AS SELECT * FROM {target}")
    half_merged.sql(
        "UPDATE {target} SET w = -5 WHERE id = 2", "ALTER TABLE {target} ADD CONSTRAINT c CHECK (v + w > 0)"
    )
    redo(half_merged.lake._context.store, KEY, tables=half_merged.lake._context.tables)
    half_merged.finish(half_merged.begin("one"))
    assert (half_merged.rows(), half_merged.bad()) == ([(1, 2, 50), (2, 8, -5)], [(2, 2, ["CHECK c"])])


def test_a_key_that_the_target_holds_twice_is_bad_if_any_of_its_rows_would_be(world: World) -> None:
    """Whichever is read first."""
    world.source().target("id INT, v INT, w INT", "v + w > 0", "v < 100")
    held = ["(1, 9, -5)", "(1, 9, 5)", "(2, 9, 5)", "(2, 9, -5)", "(3, 9, 5)", "(3, 9, 6)"]
    world.sql(*(f"INSERT INTO {{target}} VALUES {row}" for row in held))
    world.sql("INSERT INTO {orders} VALUES (1, 1), (2, 1), (3, 1), (4, 1)")
    world.write("id")
    assert world.bad() == [(1, 1, ["CHECK c0"]), (2, 1, ["CHECK c0"]), (4, 1, ["CHECK c0"])]
    kept = [(1, 9, -5), (1, 9, 5), (2, 9, -5), (2, 9, 5)]
    assert world.rows() == sorted([*kept, (3, 1, 5), (3, 1, 6)], key=repr)


def test_a_default_that_nobody_can_foretell_is_judged_only_where_the_target_has_the_value(world: World) -> None:
    world.source().target("id INT, v INT, who STRING DEFAULT current_user()", "v > 0 OR who = 'x'", properties=DEFAULTS)
    world.sql("INSERT INTO {target} VALUES (1, 1, 'me'), (2, 1, 'x')", "INSERT INTO {orders} VALUES (1, -1), (2, -2)")
    world.sql("INSERT INTO {orders} VALUES (3, 3)")
    world.write("id")
    assert world.bad() == [(1, -1, ["CHECK c0"])]
    assert [row[:2] for row in world.rows()] == [(1, 1), (2, -2), (3, 3)]
    world.sql("INSERT INTO {orders} VALUES (4, -4)")
    with pytest.raises(ConstraintViolated):  # by Delta: no row is in neither table
        world.write("id")
