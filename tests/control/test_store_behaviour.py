"""What every control store promises, whichever database it is."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Plan, Transaction, TransactionState
from tidemark.errors import (
    InvalidArgument,
    StoreNotMigrated,
    StoreTooNew,
    StoreUnreachable,
    StreamExists,
    StreamNotFound,
    TransactionNotFound,
)
from tidemark.model.statements import Evidence, PlannedWrite, Statement, TransactionKey, WriteAs
from tidemark.model.streams import Addressing, Stream, StreamMode, StreamOffset, TableRef
from tidemark.streams.store import jobs, streams, transactions
from tidemark.streams.worker.streams import create_stream, drop_stream, get_stream, list_streams, stream_history

NOW = datetime(2026, 11, 21, 5, 30, 1, 234567, tzinfo=UTC)
SOURCE = TableRef("db.orders", "file:///lake/db/orders", "table-1")
STREAM = Stream("uid-1", "Orders", SOURCE, StreamMode.STANDARD, StreamOffset("table-1", 3), False, 0, NOW, NOW)
KEY = TransactionKey("dag", "run", "task", 2)


def written_ahead(store: ControlStore, key: TransactionKey = KEY, transaction_id: str = "t-1") -> Transaction:
    from tidemark.model.streams import StreamWindow, WindowKind

    window = StreamWindow("uid-1", "Orders", SOURCE, StreamMode.STANDARD, WindowKind.CHANGES, 3, 5)
    write = PlannedWrite(WriteAs.MERGE, "mirror", source="Orders", keys=("id",), tables={"mirror": "file:///m"})
    target = TableRef("mirror", "file:///m", "table-2")
    plan = Plan((Statement(1, write, target, 7, "tidemark/uid-1/1", 1),))
    made = Transaction(key, TransactionState.OPEN, (window,), plan, "me", NOW, False, None, NOW)
    store.write(lambda c: transactions.insert(c, transaction_id, made, 1))
    return made


@pytest.fixture
def kept(store: ControlStore) -> ControlStore:
    store.write(lambda connection: streams.insert(connection, STREAM, who="ann"))
    return store


def test_its_id_is_drawn_once(url: str) -> None:
    first = ControlStore(url)
    first.migrate()
    first.migrate()
    assert ControlStore(url).store_id == first.store_id


def test_a_stream_comes_back_as_it_was_written(kept: ControlStore) -> None:
    assert get_stream(kept, "Orders") == STREAM
    assert list_streams(kept) == (STREAM,)


def test_names_differ_in_more_than_case_r12(kept: ControlStore) -> None:
    assert get_stream(kept, "oRDERS").uid == "uid-1"
    with pytest.raises(StreamExists):
        create_stream(kept, name="ORDERS", source=SOURCE, mode=StreamMode.STANDARD, at_version=0, who="ann")


def test_times_keep_their_instant_and_microseconds(kept: ControlStore) -> None:
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    kept.write(
        lambda c: streams.insert(c, replace(STREAM, uid="uid-2", name="t", created_at=east, anchor=east), who="x")
    )
    found = get_stream(kept, "t")
    assert (found.anchor, found.anchor.tzinfo) == (NOW, UTC)


def test_a_time_without_a_zone_is_refused(kept: ControlStore) -> None:
    naive = replace(STREAM, uid="uid-2", name="t", anchor=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(sa.exc.StatementError):
        kept.write(lambda connection: streams.insert(connection, naive, who="ann"))


def test_a_failed_transaction_leaves_nothing(kept: ControlStore) -> None:
    def work(connection: sa.Connection) -> None:
        streams.drop(connection, STREAM, at=NOW, who="ann", why="dropped")
        raise InvalidArgument(argument="a", value=1, problem="no")

    with pytest.raises(InvalidArgument):
        kept.write(work)
    assert get_stream(kept, "Orders") == STREAM
    assert len(stream_history(kept, "Orders")) == 1


def test_a_rehearsal_answers_and_refuses_as_the_store_does_and_keeps_nothing(kept: ControlStore) -> None:
    rehearsing = kept.rehearsal()
    assert drop_stream(rehearsing, "Orders", who="ann") == STREAM
    with pytest.raises(StreamNotFound):
        drop_stream(rehearsing, "nowhere", who="ann")
    assert (get_stream(rehearsing, "Orders"), len(stream_history(kept, "Orders"))) == (STREAM, 1)
    drop_stream(kept, "Orders", who="ann")
    assert list_streams(kept) == list_streams(rehearsing) == ()


def test_create_keeps_replaces_or_refuses_r7(kept: ControlStore) -> None:
    def create(**how: bool) -> Stream:
        return create_stream(
            kept, name="orders", source=SOURCE, mode=StreamMode.APPEND_ONLY, at_version=9, who="ann", **how
        )

    with pytest.raises(StreamExists):
        create()
    with pytest.raises(InvalidArgument):
        create(or_replace=True, if_not_exists=True)
    assert create(if_not_exists=True) == STREAM
    replaced = create(or_replace=True)
    assert (replaced.uid != STREAM.uid, replaced.offset.version, get_stream(kept, "Orders")) == (True, 9, replaced)


def test_an_offset_moves_only_from_where_it_is_expected_and_never_back(kept: ControlStore) -> None:
    def move(expected: int, to: int) -> bool:
        return kept.write(
            lambda c: streams.advance_offset(
                c, uid="uid-1", expected=expected, to=to, at=NOW, who="ann", why="test", run=None
            )
        )

    assert [move(2, 5), move(3, 2), move(3, 5), move(3, 6), move(5, 5)] == [False, False, True, False, True]
    assert [(m.from_version, m.to_version) for m in stream_history(kept, "Orders")] == [(3, 3), (3, 5), (5, 5)]


def test_serials_only_grow(kept: ControlStore) -> None:
    drawn = [kept.write(lambda connection: streams.draw_serial(connection, "uid-1")) for _ in range(3)]
    assert drawn == [1, 2, 3]


def test_parallel_writers_draw_different_serials(kept: ControlStore, store_url: str) -> None:
    drawn: list[int] = []

    def draw() -> None:
        store = ControlStore(store_url)
        drawn.extend(store.write(lambda connection: streams.draw_serial(connection, "uid-1")) for _ in range(10))
        store.close()

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(drawn) == list(range(1, 41))


def test_a_stream_has_one_holder_i9(kept: ControlStore) -> None:
    written_ahead(kept)
    written_ahead(kept, replace(KEY, run_id="other"), "t-2")
    assert kept.write(lambda c: streams.hold(c, "uid-1", "t-1"))
    assert not kept.write(lambda c: streams.hold(c, "uid-1", "t-2"))
    kept.write(lambda c: streams.free(c, "t-1"))
    assert kept.write(lambda c: streams.hold(c, "uid-1", "t-2"))


def test_a_transaction_comes_back_as_it_was_written_ahead(kept: ControlStore) -> None:
    made = written_ahead(kept)
    assert kept.read(lambda c: transactions.latest(c, KEY)).transaction == made
    with pytest.raises(TransactionNotFound):
        kept.read(lambda c: transactions.latest(c, replace(KEY, map_index=3)))


def test_a_key_has_one_transaction_that_is_not_released(kept: ControlStore) -> None:
    written_ahead(kept)
    with pytest.raises(sa.exc.IntegrityError):
        written_ahead(kept, transaction_id="t-2")
    kept.write(lambda c: transactions.release(c, "t-1", at=NOW))
    written_ahead(kept, transaction_id="t-2")
    current = kept.read(lambda c: transactions.current(c, KEY))
    assert current is not None
    assert current.id == "t-2"


def test_evidence_is_kept_only_for_the_statement_as_it_stands(kept: ControlStore) -> None:
    statement = written_ahead(kept).plan.statements[0]
    good = Evidence(1, "table-2", 8, 1, statement.digest, {"inserted": 4})

    def record(evidence: Evidence) -> bool:
        return kept.write(lambda c: transactions.record_evidence(c, "t-1", evidence))

    for wrong in ({"digest": "x"}, {"table_id": "x"}, {"txn_version": 2}, {"number": 2}):
        assert not record(replace(good, **wrong))  # type: ignore[arg-type]
    assert record(good)
    assert kept.read(lambda c: transactions.by_id(c, "t-1")).evidence == {1: good}
    kept.write(lambda c: transactions.renumber(c, "t-1", [1], 2))
    assert kept.read(lambda c: transactions.by_id(c, "t-1")).evidence == {}


def test_a_job_may_be_alive_until_it_ended_or_its_deadline(kept: ControlStore) -> None:
    statements = written_ahead(kept).plan.statements
    deadline = NOW + timedelta(hours=6)
    for job_id, kind in (("j-1", "write"), ("j-2", "write"), ("j-3", "fence")):
        kept.write(lambda c, j=job_id, k=kind: jobs.insert(c, j, "t-1", k, statements, at=NOW, deadline=deadline))

    def alive(now: datetime) -> datetime | None:
        return kept.read(lambda c: jobs.may_be_alive(c, "t-1", now=now))

    assert (alive(NOW), alive(deadline)) == (deadline, None)
    kept.write(lambda c: jobs.end(c, "j-1", at=NOW, outcome="done"))
    assert alive(NOW) == deadline
    kept.write(lambda c: jobs.end(c, "j-2", at=NOW, outcome="done"))
    assert alive(NOW) is None


@pytest.mark.parametrize("name", ["nul\0", "line\nbreak", "x" * 256, " "])
def test_a_name_that_not_every_store_can_keep_is_refused(store: ControlStore, name: str) -> None:
    with pytest.raises(InvalidArgument, match="name"):
        create_stream(store, name=name, source=SOURCE, mode=StreamMode.STANDARD, at_version=0, who="ann")


def test_names_texts_and_numbers_of_any_kind_come_back(store: ControlStore) -> None:
    name, comment = "Übergröße 🌊 '\"%s", "x" * 100_000 + "\n\t漢字 \\ :name"
    source = TableRef("/lake/a b%20", "file:///lake/" + "d" * 1000, "t", Addressing.LAKE)
    create_stream(
        store, name=name, source=source, mode=StreamMode.STANDARD, at_version=2**62, who="ann", comment=comment
    )
    found = get_stream(store, name.upper())
    assert (found.name, found.comment, found.source, found.offset.version) == (name, comment, source, 2**62)


def test_streams_are_sorted_alike_on_every_store(store: ControlStore) -> None:
    for name in ("b", "_", "A", "Ä", "a b", "10", "2"):
        create_stream(store, name=name, source=SOURCE, mode=StreamMode.STANDARD, at_version=0, who="ann")
    assert [stream.name for stream in list_streams(store)] == ["10", "2", "_", "A", "a b", "b", "Ä"]


def test_an_unknown_stream_is_an_error_with_names_like_it(store: ControlStore) -> None:
    with pytest.raises(StreamNotFound, match=r"'nothing' does not exist\. Create it"):
        get_stream(store, "nothing")
    for name in ("Orders_changes", "clicks", "orders_changed", "orders_changes_old"):
        create_stream(store, name=name, source=SOURCE, mode=StreamMode.STANDARD, at_version=0, who="ann")
    drop_stream(store, "orders_changed", "ann")
    with pytest.raises(StreamNotFound) as mistyped:
        get_stream(store, "odrers_changes")
    assert "Did you mean 'Orders_changes' or 'orders_changes_old'? Create it" in str(mistyped.value)
    with pytest.raises(StreamNotFound, match=r"does not exist\. Create it"):
        get_stream(store, "%")


def test_a_store_that_is_not_embedded_is_never_migrated_by_itself(url: str) -> None:
    store = ControlStore(url, embedded=False)
    with pytest.raises(StoreNotMigrated) as refused:
        list_streams(store)
    assert refused.value.found is None
    store.migrate()
    assert list_streams(ControlStore(url, embedded=False)) == ()


def test_a_store_of_a_newer_release_is_not_touched(store_url: str, store: ControlStore) -> None:
    store.write(lambda c: c.exec_driver_sql("UPDATE tidemark_revision SET version_num = '9999'"))
    newer = ControlStore(store_url)
    for touch in (lambda: list_streams(newer), newer.migrate):
        with pytest.raises(StoreTooNew, match="9999"):
            touch()
    assert newer.revision() == "9999"


def test_two_processes_may_create_an_embedded_store_at_once(url: str) -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(ControlStore(url, embedded=True).store_id)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ids), len(set(ids))) == (4, 1)


@pytest.mark.parametrize("url", ["sqlite:////nowhere/at/all/control.db", "postgresql://ann:s3cret@127.0.0.1:1/db"])
def test_a_store_that_cannot_be_reached_says_so_and_hides_the_password(url: str) -> None:
    with pytest.raises(StoreUnreachable) as error:
        ControlStore(url, patience=timedelta(0)).store_id  # noqa: B018
    assert "s3cret" not in str(error.value)
