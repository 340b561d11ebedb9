"""Pipes in the store: definitions change and keep their history, a pause has a limit, and runs leave their mark."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.control.change_stream_model import Clock
from tests.control.kept_objects import drifted, rows_of
from tidemark.control.object_kinds import Severity
from tidemark.control.object_list import ObjectsWish, ShownObject
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, PipeExists, PipeNotFound, PipeStale, SqlCompilationError
from tidemark.pipes.model.pipes import Pipe, PipeState
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.store import pipes
from tidemark.pipes.worker import definitions
from tidemark.pipes.worker.definitions import get_pipe, note_pipe_pull, note_pipe_run, pause_pipe, resume_pipe
from tidemark.pipes.worker.health import troubled_pipes
from tidemark.streams.worker.object_states import list_objects
from tidemark.streams.worker.sources import open_table

COPY = "COPY INTO shop.orders FROM @landing"
RUN = "load_files/scheduled__1/orders/-1"


@pytest.fixture
def clock(copied_store: ControlStore) -> Clock:
    copied_store.clock = Clock()
    return copied_store.clock


@pytest.fixture
def store(copied_store: ControlStore, clock: Clock) -> Iterator[ControlStore]:
    """The table of objects follows all that happens in it."""
    yield copied_store
    assert drifted(copied_store) == []


def create(store: ControlStore, name: str = "shop.orders_pipe", statement: str = COPY, **how: object) -> Pipe:
    queue = queue_path("/lake", name)
    return definitions.create_pipe(store, name, statement, queue=queue, by=RUN, **how)  # type: ignore[arg-type]


def pipe_of_uid(store: ControlStore, uid: str) -> Pipe | None:
    return next((pipe for pipe in store.read(pipes.pipes_ever) if pipe.uid == uid), None)


def shown(store: ControlStore) -> ShownObject:
    (only,) = list_objects(store, open_table, ObjectsWish(kind="pipe"))
    return only


def test_a_pipe_is_found_by_its_name_in_any_case_and_is_kept_as_it_was_given(store: ControlStore, clock: Clock) -> None:
    made = create(store, auto_ingest=False, notification_channel="sqs://q", comment="daily")
    assert made == get_pipe(store, "SHOP.Orders_Pipe")
    assert made == pipe_of_uid(store, made.uid)
    assert (made.name, made.copy_statement, made.queue) == (
        "shop.orders_pipe",
        COPY,
        "file:///lake/shop/orders_pipe__files",
    )
    assert (made.auto_ingest, made.notification_channel, made.comment) == (False, "sqs://q", "daily")
    assert (made.created_at, made.paused_at, made.last_run_at, made.ended_at) == (clock.now, None, None, None)


def test_a_name_in_quotes_is_exact(store: ControlStore) -> None:
    for name in ("orders", '"orders"', '"Odd. name"', '"a""b"'):
        create(store, name)
    assert get_pipe(store, '"ORDERS"').name == "orders"
    assert get_pipe(store, '"orders"').name == '"orders"'
    assert get_pipe(store, "`Odd. name`").name == '"Odd. name"'
    assert definitions.find_pipe(store, '"Orders"') is None
    assert definitions.find_pipe(store, '"ODD. NAME"') is None


@pytest.mark.parametrize("name", ["", "  ", "a.b.c.d", "a..b", "a/b", "@a", 'a"b', '"a', "a\nb", '".."', "x" * 256])
def test_a_name_that_is_none_is_refused_before_anything_is_stored(store: ControlStore, name: str) -> None:
    with pytest.raises(InvalidArgument):
        definitions.create_pipe(store, name, COPY, queue="/lake/x__files", by=RUN)
    assert definitions.list_pipes(store) == ()


def test_a_second_pipe_of_a_name_is_refused_kept_or_takes_its_place(store: ControlStore, clock: Clock) -> None:
    made = create(store)
    paused = pause_pipe(store, made.name, by=RUN)
    note_pipe_run(store, made.uid, "file a.csv was skipped", None, clock.go())
    with pytest.raises(PipeExists):
        create(store, "SHOP.ORDERS_PIPE", "COPY INTO other FROM @landing")
    with pytest.raises(InvalidArgument, match="contradicts"):
        create(store, or_replace=True, if_not_exists=True)
    assert create(store, statement="COPY INTO other FROM @landing", if_not_exists=True).copy_statement == COPY
    for _ in range(2):
        replaced = create(store, "Shop.Orders_Pipe", "COPY INTO other FROM @landing", or_replace=True, comment="new")
        assert replaced == get_pipe(store, made.name)
        assert replaced == replace(
            paused,
            name="Shop.Orders_Pipe",
            copy_statement="COPY INTO other FROM @landing",
            comment="new",
            last_run_at=clock.now,
        )


def test_a_dropped_pipe_frees_its_name_and_keeps_its_uid_and_queue(store: ControlStore, clock: Clock) -> None:
    first = create(store)
    ended = clock.go()
    assert definitions.drop_pipe(store, first.name, by=RUN) == first
    assert definitions.drop_pipe(store, first.name, if_exists=True, by=RUN) is None
    with pytest.raises(PipeNotFound):
        definitions.drop_pipe(store, first.name, by=RUN)
    assert pipe_of_uid(store, first.uid) == replace(first, ended_at=ended)
    assert not note_pipe_run(store, first.uid, None, None, clock.go())
    assert rows_of(store) == {}
    second = create(store, "SHOP.orders_pipe")
    assert second.uid != first.uid
    assert second.queue == "file:///lake/SHOP/orders_pipe__files"
    definitions.drop_pipe(store, second.name, by=RUN)
    assert create(store).queue == "file:///lake/shop/orders_pipe_2__files"


def test_a_queue_belongs_to_one_pipe(store: ControlStore) -> None:
    create(store, "orders_2")
    for _ in range(2):
        create(store, "orders")
        definitions.drop_pipe(store, "orders", by=RUN)
    assert create(store, "orders").queue == "file:///lake/orders_4__files"


def test_an_unknown_pipe_is_an_error_with_similar_names(store: ControlStore) -> None:
    with pytest.raises(PipeNotFound, match="These exist: none"):
        get_pipe(store, "orders")
    for name in ("shop.orders", "shop.order_items", "clicks"):
        create(store, name)
    with pytest.raises(PipeNotFound, match=r"no pipe shop\.ordres\. These exist: shop\.orders, "):
        get_pipe(store, "shop.ordres")
    with pytest.raises(PipeNotFound, match=r"These exist: clicks, shop\.order_items, shop\.orders\."):
        pause_pipe(store, "zzz", by=RUN)


def test_pipes_are_listed_by_name_and_by_a_pattern_of_their_last_part(store: ControlStore) -> None:
    for name in ("b.Orders", "a.clicks", '"a"."orders 2"'):
        create(store, name)
    assert [one.name for one in definitions.list_pipes(store)] == ["a.clicks", '"a"."orders 2"', "b.Orders"]
    assert [one.name for one in definitions.list_pipes(store, "ORDERS%")] == ['"a"."orders 2"', "b.Orders"]
    assert definitions.list_pipes(store, "a%") == ()


def test_a_pause_is_stored_once_and_ends(store: ControlStore, clock: Clock) -> None:
    create(store)
    since = clock.now
    for _ in range(2):
        assert pause_pipe(store, "shop.orders_pipe", by=RUN).paused_at == since
        clock.go()
    assert (shown(store).state, shown(store).severity, shown(store).notice) == ("PAUSED", Severity.WAITING, None)
    for _ in range(2):
        assert resume_pipe(store, "shop.orders_pipe", by=RUN).paused_at is None
    assert get_pipe(store, "shop.orders_pipe").paused_at is None
    assert shown(store).state == "RUNNING"


def test_a_pause_longer_than_the_history_is_a_warning_and_ends_by_force_alone(
    store: ControlStore, clock: Clock
) -> None:
    create(store)
    pause_pipe(store, "shop.orders_pipe", by=RUN)
    clock.now += timedelta(days=14)
    assert shown(store).severity is Severity.WAITING
    clock.now += timedelta(seconds=1)
    assert shown(store).severity is Severity.WARNING
    assert "it is stale: paused since" in str(shown(store).trouble)
    with pytest.raises(PipeStale, match="STALENESS_CHECK_OVERRIDE"):
        resume_pipe(store, "shop.orders_pipe", by=RUN)
    assert get_pipe(store, "shop.orders_pipe").paused_at is not None
    assert resume_pipe(store, "shop.orders_pipe", force=True, by=RUN).paused_at is None


def test_runs_leave_their_time_and_their_problem(store: ControlStore, clock: Clock) -> None:
    uid = create(store).uid
    assert (shown(store).state, shown(store).severity, shown(store).owner_dag) == (
        "RUNNING",
        Severity.WAITING,
        "load_files",
    )
    assert note_pipe_run(store, uid, None, None, clock.go(), by=RUN)
    assert (shown(store).severity, shown(store).lag_seconds) == (Severity.OK, 0.0)
    skipped = clock.go()
    for _ in range(2):
        assert note_pipe_run(store, uid, "file a.csv was skipped: no number", None, skipped, by=RUN)
    seen = shown(store)
    assert (seen.state, seen.severity, seen.problem_dags) == ("RUNNING", Severity.WARNING, ("load_files",))
    assert seen.problem == "file a.csv was skipped: no number"
    assert note_pipe_run(store, uid, None, None, clock.go(), by=RUN, took_files=False)
    assert shown(store).problem == seen.problem
    assert get_pipe(store, "shop.orders_pipe").problem_at == skipped
    assert note_pipe_run(store, uid, None, None, clock.go(), by=RUN)
    assert (shown(store).severity, shown(store).problem) == (Severity.OK, None)


def test_the_last_notifications_have_a_time_which_belongs_to_their_channel(store: ControlStore, clock: Clock) -> None:
    uid = create(store, notification_channel="/notes").uid
    first, last = clock.go(), clock.go()
    for at, kept in ((last, True), (last, True), (first, False)):
        assert note_pipe_pull(store, uid, at) is kept
        assert get_pipe(store, "shop.orders_pipe").pulled_at == last
    assert create(store, notification_channel="/notes", comment="x", or_replace=True).pulled_at == last
    assert create(store, notification_channel="/others", or_replace=True).pulled_at is None
    assert note_pipe_pull(store, uid, last)
    assert create(store, or_replace=True).pulled_at is None
    definitions.drop_pipe(store, "shop.orders_pipe", by=RUN)
    assert not note_pipe_pull(store, uid, clock.go())


def test_a_stalled_pipe_failed_until_a_run_succeeds(store: ControlStore, clock: Clock) -> None:
    uid = create(store).uid
    at = clock.go()
    assert note_pipe_run(store, uid, "no such column", PipeState.STALLED_COMPILATION_ERROR, at, by=RUN)
    seen = shown(store)
    assert (seen.state, seen.severity, seen.since) == ("STALLED_COMPILATION_ERROR", Severity.FAILED, at)
    assert seen.problem == "no such column"
    assert not note_pipe_run(store, uid, None, None, at - timedelta(seconds=1))
    assert get_pipe(store, "shop.orders_pipe").stalled is PipeState.STALLED_COMPILATION_ERROR
    assert note_pipe_run(store, uid, None, None, clock.go(), by=RUN, took_files=False)
    assert (shown(store).state, shown(store).problem) == ("RUNNING", None)


def test_a_problem_that_was_met_in_a_notebook_is_shown_to_nobody_who_needs_a_right(
    store: ControlStore, clock: Clock
) -> None:
    uid = create(store).uid
    note_pipe_run(store, uid, "file a.csv was skipped", None, clock.go(), by="ana")
    assert (shown(store).problem_dags, shown(store).owner_dag) == ((), "load_files")


def test_secrets_of_a_problem_are_hidden_and_it_has_a_limit(store: ControlStore, clock: Clock) -> None:
    store.hide = lambda text: text.replace("s3cret", "***")
    uid = create(store).uid
    note_pipe_run(store, uid, f"s3cret {'x' * 10_000}", None, clock.go())
    problem = str(get_pipe(store, "shop.orders_pipe").problem)
    assert problem.startswith("*** xxx")
    assert len(problem) == 2_000


def test_a_comment_changes_alone(store: ControlStore) -> None:
    made = create(store, comment="one")
    for comment in ("two", None, None):
        assert definitions.comment_on_pipe(store, made.name, comment, by=RUN) == replace(made, comment=comment)
        assert get_pipe(store, made.name) == replace(made, comment=comment)


def test_pipes_that_need_a_look_are_reported_the_stalled_first(store: ControlStore, clock: Clock) -> None:
    assert troubled_pipes(store) == ()
    for name in ("skips", "stalls", "waits", "well"):
        create(store, name)
    pause_pipe(store, "waits", by=RUN)
    since = clock.now
    at = clock.go(timedelta(days=14, seconds=1))
    note_pipe_run(store, get_pipe(store, "skips").uid, "file a.csv was skipped", None, at)
    note_pipe_run(store, get_pipe(store, "waits").uid, "file b.csv was skipped", None, at)
    note_pipe_run(store, get_pipe(store, "stalls").uid, "no such column", PipeState.STALLED_COMPILATION_ERROR, at)
    found = troubled_pipes(store)
    assert [(one.pipe, one.state, one.stale, one.since) for one in found] == [
        ("stalls", "STALLED_COMPILATION_ERROR", False, at),
        ("skips", "RUNNING", False, at),
        ("waits", "PAUSED", True, since),
    ]
    assert str(found[1]) == f"Pipe skips is RUNNING since {at:%Y-%m-%d %H:%M} UTC: file a.csv was skipped"
    assert "longer than 14 days" in str(found[2])
    assert [one.pipe for one in troubled_pipes(store, ["WAITS", "well"])] == ["waits"]
    with pytest.raises(PipeNotFound):
        troubled_pipes(store, ["nobody"])


@pytest.mark.parametrize(
    "statement",
    ["COPY INTO t", "SELECT 1", f"{COPY} FORCE = TRUE", f"{COPY} ON_ERROR = ABORT_STATEMENT", f"{COPY} FILES = ('a')"],
)
def test_a_statement_that_no_pipe_can_have_is_refused_before_anything_is_stored(
    store: ControlStore, statement: str
) -> None:
    with pytest.raises(SqlCompilationError):
        create(store, statement=statement)
    assert definitions.list_pipes(store) == ()


def test_of_two_creations_at_once_one_makes_the_pipe(store: ControlStore) -> None:
    def one(_: int) -> Pipe | None:
        try:
            return create(store)
        except PipeExists:
            return None

    with ThreadPoolExecutor(4) as pool:
        made = [pipe for pipe in pool.map(one, range(4)) if pipe is not None]
    assert made == [get_pipe(store, "shop.orders_pipe")]


def test_of_two_resumes_and_pauses_at_once_none_is_lost(store: ControlStore) -> None:
    create(store)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: pause_pipe(store, "shop.orders_pipe", by=RUN), range(4)))
        assert get_pipe(store, "shop.orders_pipe").paused_at is not None
        list(pool.map(lambda _: resume_pipe(store, "shop.orders_pipe", by=RUN), range(4)))
    assert get_pipe(store, "shop.orders_pipe").paused_at is None
