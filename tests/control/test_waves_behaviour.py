"""What the control store promises the readers of a change stream, whichever database it is: the cases in which other
readers of partitions went wrong, one by one (partitions.md 2.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.control.change_stream_model import START, ChangeStreamWorld, segment
from tests.guarantees.partition_invariants import require_invariants
from tidemark.change_streams.model.change_streams import (
    MICROSECOND,
    ChangeStreamOptions,
    Chunk,
    GroupPartition,
    LoadSegment,
    Partition,
    PartitionState,
    Position,
    WavePlan,
    WaveResult,
)
from tidemark.change_streams.store import chunks, group_partitions
from tidemark.change_streams.store.group_partitions import Advance
from tidemark.change_streams.worker.definitions import set_options
from tidemark.change_streams.worker.groups import (
    create_group,
    drop_group,
    group_status,
    list_groups,
    pause_group,
    reset_group,
    resume_group,
)
from tidemark.change_streams.worker.retention import Forgotten, expire_before, forget
from tidemark.change_streams.worker.waves import (
    begin_chunks,
    chunk_failed,
    chunk_written,
    commit_wave,
    finish,
    plan_wave,
)
from tidemark.errors import (
    ChunkChanged,
    ConsumerGroupExists,
    ConsumerGroupNotFound,
    InvalidArgument,
    OutOfRange,
    PartitionExpired,
    PartitionsFailed,
    PartitionTokenInvalid,
)

MINUTE = timedelta(minutes=1)


class Readers:
    """The consumer group `g` and its runs; the invariants hold after each call."""

    def __init__(self, world: ChangeStreamWorld, start: object = "earliest") -> None:
        self.world, self.store = world, world.store
        self.group = create_group(self.store, "s", "g", start)  # type: ignore[arg-type]
        self.seen = require_invariants(self.store, "s")

    def plan(self, run: str = "r1", *, max_chunks: int = 10, max_rows: int = 100, token: str | None = None) -> WavePlan:
        planned = plan_wave(self.store, "s", "g", run=run, max_chunks=max_chunks, max_rows=max_rows, token=token)
        self.check()
        return planned

    def read(self, chunks: Sequence[Chunk], run: str = "r1") -> None:
        for chunk in begin_chunks(self.store, chunks, run):
            chunk_written(self.store, chunk, chunk.expected, {})
        self.check()

    def commit(self, run: str = "r1") -> WaveResult:
        done = commit_wave(self.store, "s", "g", run=run)
        self.check()
        return done

    def wave(self, run: str = "r1", **how: int) -> tuple[WavePlan, WaveResult]:
        planned = self.plan(run, **how)
        self.read(planned.chunks, run)
        return planned, self.commit(run)

    def check(self) -> None:
        self.seen = require_invariants(self.store, "s", self.seen)

    def all(self) -> dict[tuple[int, int, datetime], GroupPartition]:
        found = self.store.read(lambda c: group_partitions.of_group(c, self.group))
        return {(one.partition.lo, one.partition.hi, one.partition.start): one for one in found}

    def states(self) -> list[tuple[int, int, str]]:
        return sorted((lo, hi, one.state.value) for (lo, hi, _), one in self.all().items())


@pytest.fixture
def readers(world: ChangeStreamWorld) -> Readers:
    return Readers(world)


def loaded(world: ChangeStreamWorld, *of: Partition, rows: int = 5, **how: object) -> datetime:
    """A batch with one segment of each partition; up to where it is published."""
    at = world.clock.now + timedelta(seconds=1)
    return world.batch(*(segment(one.token, at, rows) for one in of), **how).published_until


# --- one partition


def test_a_batch_is_read_once_from_capture_to_commit(readers: Readers) -> None:
    left, right = readers.world.active()
    until = loaded(readers.world, left, rows=7)
    plan = readers.plan()
    (chunk,) = plan.chunks
    assert (chunk.token, chunk.number, chunk.expected, chunk.last) == (left.token, 0, 7, False)
    assert (chunk.start, chunk.end, chunk.stream, chunk.group) == (Position(START), Position(until), "s", "g")
    assert (plan.moved_on, plan.waiting) == (1, 0)
    readers.read(plan.chunks)
    done = readers.commit()
    assert (done.advanced, done.finished, done.children, done.low_watermark) == (1, (), (), until)
    assert finish(readers.store, "s", "g", run="r1") == 0
    assert readers.plan("r2").chunks == ()
    assert {one.watermark for one in readers.all().values()} == {Position(until)}
    assert right.token != left.token


def test_a_plan_that_runs_again_hands_out_the_same_chunks(readers: Readers) -> None:
    """Also after more was captured, and in another run, after a task had begun: bounds never change."""
    loaded(readers.world, *readers.world.active())
    first = readers.plan("r1")
    begin_chunks(readers.store, first.chunks[:1], "r1")
    loaded(readers.world, *readers.world.active())
    assert readers.plan("r2", max_rows=1).chunks == first.chunks
    assert [one.state for one in readers.all().values()] == [PartitionState.SCHEDULED] * 2
    readers.read(first.chunks, "r2")
    readers.commit("r2")
    (again, _) = second = readers.plan("r2").chunks
    assert {chunk.number for chunk in second} == {1}
    assert again.start == first.chunks[0].end


def test_open_chunks_come_first_and_count_against_the_most(readers: Readers) -> None:
    left, right = readers.world.active()
    loaded(readers.world, right)
    (open_one,) = readers.plan("dead").chunks
    loaded(readers.world, left, rows=9)
    plan = readers.plan("r2", max_chunks=1)
    assert (plan.chunks, plan.waiting) == ((open_one,), 1)
    plan = readers.plan("r2", max_chunks=2)
    assert ([chunk.token for chunk in plan.chunks], plan.waiting) == ([right.token, left.token], 0)


def test_the_oldest_watermark_comes_first(readers: Readers) -> None:
    left, right = readers.world.active()
    loaded(readers.world, left, right)
    readers.wave(max_rows=1, max_chunks=1)
    loaded(readers.world, left, right)
    (chunk,) = readers.plan(max_chunks=1).chunks
    oldest = min(readers.all().values(), key=lambda one: one.watermark).partition.token
    assert chunk.token == oldest


def test_chunks_end_where_segments_begin(readers: Readers) -> None:
    left, _ = readers.world.active()
    at = readers.world.clock.now + timedelta(seconds=1)
    parts = [segment(left.token, at, rows, f"{number:012d}") for number, rows in enumerate((4, 4, 3, 9))]
    until = readers.world.batch(*parts).published_until
    taken = []
    while chunks := readers.wave(max_rows=8)[0].chunks:
        taken += [(one.start, one.end, one.expected, one.number) for one in chunks]
    assert taken == [
        (Position(START), parts[2].start, 8, 0),
        (parts[2].start, parts[3].start, 3, 1),
        (parts[3].start, Position(until), 9, 2),
    ]


def test_a_group_that_starts_amid_a_segment_reads_the_rest_of_it(world: ChangeStreamWorld) -> None:
    """Rows of a segment that begins before the start may lie behind it; no row is left out, and none twice."""
    left, _ = world.active()
    loaded(world, left)
    at = world.clock.now + timedelta(seconds=1)
    world.batch(segment(left.token, at, 5), segment(left.token, at + 30 * timedelta(seconds=1), 6))
    amid = at + timedelta(seconds=7)
    readers = Readers(world, amid)
    taken = []
    while chunks := readers.wave(max_rows=1)[0].chunks:
        taken += [(one.start.at, one.end.at, one.expected) for one in chunks]
    later = at + timedelta(seconds=30)
    assert taken == [(amid, later, 5), (later, world.stream.published_until, 6)]


def test_many_segments_end_a_chunk(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.change_streams.worker import waves

    monkeypatch.setattr(waves, "SEGMENTS_AT_ONCE", 3)
    left, _ = readers.world.active()
    at = readers.world.clock.now + timedelta(seconds=1)
    parts = [segment(left.token, at, 1, f"{number:012d}") for number in range(5)]
    readers.world.batch(*parts)
    ends = []
    while chunks := readers.wave(max_rows=100)[0].chunks:
        ends += [one.end for one in chunks]
    assert ends == [parts[2].start, parts[4].start, Position(readers.world.stream.published_until)]


# --- trees


def split(world: ChangeStreamWorld, one: Partition, at: int, *load: LoadSegment) -> list[Partition]:
    world.batch(*load, closed=[one], opened=[(one.lo, at), (at, one.hi)])
    return [found for found in world.active() if one.token in found.parents]


def test_children_come_in_as_their_parent_is_finished_and_not_before(readers: Readers) -> None:
    left, right = readers.world.active()
    at = readers.world.clock.now + timedelta(seconds=1)
    children = split(readers.world, left, 9, segment(left.token, at, 5))
    boundary = readers.world.stream.published_until
    loaded(readers.world, *children)
    plan = readers.plan()
    (chunk,) = plan.chunks
    assert (chunk.token, chunk.last, chunk.end) == (left.token, True, Position(boundary))
    readers.read(plan.chunks)
    assert {child.token for child in children}.isdisjoint(one.partition.token for one in readers.all().values())
    done = readers.commit()
    assert (done.finished, set(done.children)) == ((left.token,), {child.token for child in children})
    assert done.low_watermark == boundary  # not past the children
    assert [chunk.start for chunk in readers.wave()[0].chunks] == [Position(boundary)] * 2
    below = [(0, 9, "ready"), (0, left.hi, "finished"), (9, left.hi, "ready")]
    assert readers.states() == [*below, (*_of(right), "ready")]


def test_a_child_of_a_merge_waits_for_every_parent_and_comes_in_once(readers: Readers) -> None:
    """Each parent brings it; the second time it is there already."""
    left, right = readers.world.active()
    at = readers.world.clock.now + timedelta(seconds=1)
    readers.world.batch(segment(right.token, at, 5), closed=[left, right], opened=[(0, 65536)])
    (child,) = readers.world.active()
    loaded(readers.world, child)
    plan = readers.plan()
    assert [chunk.token for chunk in plan.chunks] == [right.token]
    assert (plan.moved_on, plan.waiting) == (1, 1)
    assert readers.states() == [(*_of(left), "finished"), (0, 65536, "created"), (*_of(right), "scheduled")]
    assert readers.commit().low_watermark == START  # CREATED counts, and so does its slow parent
    readers.read(plan.chunks)
    done = readers.commit()
    assert (done.finished, done.children) == ((right.token,), ())
    assert [chunk.token for chunk in readers.wave()[0].chunks] == [child.token]


def test_a_child_waits_for_a_parent_that_is_not_in_the_group_yet(readers: Readers) -> None:
    """One parent is read; the other has not come in, since its own parent is slow."""
    left, right = readers.world.active()
    at = readers.world.clock.now + timedelta(seconds=1)
    low, high = split(readers.world, left, 9, segment(left.token, at, 5))
    readers.world.batch(closed=[high, right], opened=[(9, 65536)])
    merged = readers.world.active()[1]
    loaded(readers.world, low, merged)
    plan = readers.plan()
    assert [chunk.token for chunk in plan.chunks] == [left.token]
    assert (9, 65536, "created") in readers.states()
    assert high.token not in {one.partition.token for one in readers.all().values()}
    readers.read(plan.chunks)
    readers.commit()
    assert {chunk.token for chunk in readers.plan().chunks} == {low.token, merged.token}


def test_a_chain_of_partitions_without_rows_needs_no_wave(readers: Readers) -> None:
    for number in range(6):
        one = readers.world.active()[0]
        split(readers.world, one, one.hi // 2) if number % 2 == 0 else readers.world.batch(
            closed=readers.world.active()[:2], opened=[(0, readers.world.active()[1].hi)]
        )
    done = readers.commit()
    assert len(done.finished) == 3 * 1 + 3 * 2
    assert done.low_watermark == readers.world.stream.published_until
    assert readers.plan() == WavePlan((), 0, 0)


def test_a_group_starts_with_the_partitions_that_are_active_then(world: ChangeStreamWorld) -> None:
    left, right = world.active()
    before = loaded(world, left)
    children = split(world, left, 9)
    boundary = world.stream.published_until
    loaded(world, *children, right)
    for number, (start, tokens) in enumerate(
        [
            ("earliest", [left, right]),
            (before, [left, right]),
            (boundary - MICROSECOND, [left, right]),
            (boundary, [*children, right]),
            ("now", [*children, right]),
        ]
    ):
        group = create_group(world.store, "s", f"g{number}", start)  # type: ignore[arg-type]
        found = world.store.read(lambda c, group=group: group_partitions.of_group(c, group))  # type: ignore[misc]
        assert {one.partition.token for one in found} == {one.token for one in tokens}, start
        assert {one.watermark for one in found} == {Position(group.start)}
        assert {one.state for one in found} == {PartitionState.CREATED}
    require_invariants(world.store, "s")


# --- failures


def test_a_failed_partition_waits_for_another_run_and_holds_back_only_its_descendants(readers: Readers) -> None:
    left, right = readers.world.active()
    at = readers.world.clock.now + timedelta(seconds=1)
    split(readers.world, left, 9, segment(left.token, at, 5), segment(right.token, at, 5))
    first = readers.plan("r1")
    by_token = {chunk.token: chunk for chunk in first.chunks}
    begin_chunks(readers.store, first.chunks, "r1")
    for _ in range(2):
        chunk_failed(readers.store, by_token[left.token], "r1", "no luck")
    readers.read([by_token[right.token]])
    readers.commit()
    loaded(readers.world, *readers.world.active())
    again = readers.plan("r1")
    assert ([chunk.token for chunk in again.chunks], again.waiting) == ([right.token], 1)
    readers.read(again.chunks)
    readers.commit()
    with pytest.raises(PartitionsFailed, match="no luck") as caught:
        finish(readers.store, "s", "g", run="r1")
    assert (caught.value.failed, caught.value.tokens) == (1, left.token)
    assert group_status(readers.store, "s", "g").failed == {left.token: "no luck"}
    assert finish(readers.store, "s", "g", run="r2") == 1
    assert readers.wave("r2")[0].chunks == (by_token[left.token],)
    assert group_status(readers.store, "s", "g").failed == {}
    assert len(readers.wave("r2")[0].chunks) == 2


def test_secrets_are_taken_out_of_what_a_partition_failed_for(readers: Readers) -> None:
    left, _ = readers.world.active()
    loaded(readers.world, left)
    (chunk,) = readers.plan().chunks
    begin_chunks(readers.store, [chunk], "r1")
    readers.store.hide = lambda text: text.replace("hunter2", "***")
    chunk_failed(readers.store, chunk, "r1", "no luck with hunter2")
    assert group_status(readers.store, "s", "g").failed == {left.token: "no luck with ***"}


def test_a_retry_in_the_same_run_takes_the_failure_back(readers: Readers) -> None:
    left, _ = readers.world.active()
    loaded(readers.world, left)
    (chunk,) = readers.plan().chunks
    begin_chunks(readers.store, [chunk], "r1")
    chunk_failed(readers.store, chunk, "r1", "no luck")
    assert readers.plan("r1").chunks == ()
    readers.read([chunk])
    chunk_failed(readers.store, chunk, "r1", "too late: the sink has it")
    readers.commit()
    assert finish(readers.store, "s", "g", run="r1") == 0


def test_what_a_dead_run_wrote_is_committed_by_the_next_and_not_read_again(readers: Readers) -> None:
    left, _ = readers.world.active()
    until = loaded(readers.world, left)
    (chunk,) = readers.plan("dead").chunks
    readers.read([chunk], "dead")
    assert finish(readers.store, "s", "g", run="r2") == 1
    plan = readers.plan("r2")
    assert (plan.chunks, plan.moved_on) == ((), 1)
    assert readers.commit("r2").low_watermark == until
    assert begin_chunks(readers.store, [chunk], "late") == ()
    assert chunk_written(readers.store, chunk, 1, {}) is False


ILLEGAL: dict[str, tuple[Callable[[Readers, Chunk], object], PartitionState]] = {
    "begin twice": (lambda r, chunk: begin_chunks(r.store, [chunk, chunk], "r1"), PartitionState.RUNNING),
    "write before begin": (lambda r, chunk: chunk_written(r.store, chunk, 5, {}), PartitionState.SCHEDULED),
    "fail before begin": (lambda r, chunk: chunk_failed(r.store, chunk, "r9", "no"), PartitionState.SCHEDULED),
    "commit an open chunk": (lambda r, chunk: r.commit(), PartitionState.SCHEDULED),
    "run what is created": (
        lambda r, chunk: r.store.write(lambda c: group_partitions.mark_running(c, r.group.uid, [_other(r, chunk)])),
        PartitionState.SCHEDULED,
    ),
    "fail what is ready": (
        lambda r, chunk: r.store.write(
            lambda c: group_partitions.mark_failed(c, r.group.uid, _other(r, chunk), run="r", error="e")
        ),
        PartitionState.SCHEDULED,
    ),
    "advance from elsewhere": (
        lambda r, chunk: r.store.write(
            lambda c: group_partitions.advance(
                c, r.group.uid, [Advance(chunk.token, Position(START + MINUTE), chunk.end, True)]
            )
        ),
        PartitionState.SCHEDULED,
    ),
    "go down": (
        lambda r, chunk: r.store.write(
            lambda c: group_partitions.advance(
                c, r.group.uid, [Advance(chunk.token, chunk.start, Position(START - MINUTE), False)]
            )
        ),
        PartitionState.SCHEDULED,
    ),
    "commit what is open": (
        lambda r, chunk: r.store.write(lambda c: chunks.mark_committed(c, [chunk], at=START)),
        PartitionState.SCHEDULED,
    ),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_a_move_that_is_not_due_changes_nothing_else(readers: Readers, name: str) -> None:
    left, _ = readers.world.active()
    loaded(readers.world, left)
    (chunk,) = readers.plan().chunks
    act, state = ILLEGAL[name]
    before = readers.all()
    act(readers, chunk)
    readers.check()
    changed = [one for place, one in readers.all().items() if one != before[place]]
    assert [one.partition.token for one in changed] in ([], [left.token])
    found = next(one for one in readers.all().values() if one.partition.token == left.token)
    assert (found.state, found.watermark) == (state, Position(START))


def test_a_finished_partition_stays_finished(readers: Readers) -> None:
    left, _ = readers.world.active()
    split(readers.world, left, 9)
    readers.commit()
    end = next(one for one in readers.all().values() if one.partition.token == left.token).watermark
    later = Position(end.at + MINUTE)
    for move in (Advance(left.token, end, end, False), Advance(left.token, end, later, True)):
        moved = readers.store.write(lambda c, move=move: group_partitions.advance(c, readers.group.uid, [move]))  # type: ignore[misc]
        assert moved is False
    readers.store.write(lambda c: group_partitions.schedule(c, readers.group.uid, [left.token]))
    readers.check()
    assert readers.plan(token=left.token).chunks == ()


def test_a_chunk_with_other_bounds_is_refused(readers: Readers) -> None:
    left, _ = readers.world.active()
    loaded(readers.world, left)
    (chunk,) = readers.plan().chunks
    longer = replace(chunk, end=Position(chunk.end.at + MINUTE))
    for act in (
        lambda: begin_chunks(readers.store, [longer], "r1"),
        lambda: chunk_written(readers.store, longer, 5, {}),
        lambda: chunk_failed(readers.store, longer, "r1", "no"),
        lambda: begin_chunks(readers.store, [replace(chunk, number=7)], "r1"),
    ):
        with pytest.raises(ChunkChanged, match="Plan the wave again"):
            act()
    reset_group(readers.store, "s", "g", "earliest")
    with pytest.raises(ChunkChanged):
        chunk_written(readers.store, chunk, 5, {})


# --- one token alone


def test_a_plan_for_one_token_is_of_that_alone(readers: Readers) -> None:
    left, right = readers.world.active()
    loaded(readers.world, left, right)
    (chunk,) = readers.plan(token=right.token).chunks
    assert (chunk.token, readers.plan(token=right.token).chunks) == (right.token, (chunk,))
    assert [one.token for one in readers.plan(token=left.token).chunks] == [left.token]
    with pytest.raises(PartitionTokenInvalid, match="no such partition"):
        readers.plan(token="another")


@pytest.mark.parametrize("how", [{"max_chunks": 0}, {"max_rows": 0}])
def test_a_wave_of_nothing_is_refused(readers: Readers, how: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument, match="at least one"):
        readers.plan(**how)


# --- groups


def test_groups_have_progress_of_their_own(readers: Readers) -> None:
    left, _ = readers.world.active()
    loaded(readers.world, left)
    other = create_group(readers.store, "s", "Other", "earliest")
    assert create_group(readers.store, "s", "OTHER", "now", if_not_exists=True) == other
    with pytest.raises(ConsumerGroupExists, match="began at"):
        create_group(readers.store, "s", "other", "now")
    readers.wave()
    assert [one.name for one in list_groups(readers.store, "s")] == ["g", "Other"]
    assert group_status(readers.store, "s", "other").low_watermark == START
    assert drop_group(readers.store, "s", "other") == other
    with pytest.raises(ConsumerGroupNotFound, match="These exist: g"):
        group_status(readers.store, "s", "other")


@pytest.mark.parametrize(
    ("start", "said"),
    [(START - MICROSECOND, "too far in the past"), (START + timedelta(days=9), "too far in the future")],
)
def test_a_group_starts_where_the_log_is(world: ChangeStreamWorld, start: datetime, said: str) -> None:
    with pytest.raises(OutOfRange, match=said):
        create_group(world.store, "s", "g", start)
    for nonsense in ("tomorrow", start.replace(tzinfo=None)):
        with pytest.raises(InvalidArgument, match="'earliest' or 'now'"):
            create_group(world.store, "s", "g", nonsense)  # type: ignore[arg-type]
    assert list_groups(world.store, "s") == ()


def test_earliest_is_what_the_retention_still_has(world: ChangeStreamWorld) -> None:
    world.clock.go(timedelta(days=2))
    world.opened()
    assert create_group(world.store, "s", "g", "earliest").start == world.clock.now - timedelta(days=1)
    with pytest.raises(OutOfRange, match="too far in the past"):
        create_group(world.store, "s", "h", world.clock.now - timedelta(days=1, seconds=1))


def test_a_pausing_group_gets_nothing_and_goes_on_after(readers: Readers) -> None:
    left, right = readers.world.active()
    loaded(readers.world, left)
    (chunk,) = readers.plan().chunks
    loaded(readers.world, right)
    for _ in range(2):
        assert pause_group(readers.store, "s", "g").paused
    assert (readers.plan().chunks, readers.plan().waiting) == ((), 2)
    readers.read([chunk])
    readers.commit()
    assert resume_group(readers.store, "s", "g").paused is False
    assert [one.token for one in readers.plan().chunks] == [right.token]


def test_a_reset_group_is_another_reader(readers: Readers) -> None:
    left, _ = readers.world.active()
    until = loaded(readers.world, left)
    readers.wave()
    old, readers.group = readers.group, reset_group(readers.store, "s", "G", START)
    assert (readers.group.name, readers.group.uid != old.uid) == ("g", True)
    (chunk,) = readers.wave()[0].chunks
    assert (chunk.group_uid, chunk.number, chunk.start) == (readers.group.uid, 0, Position(START))
    assert readers.commit().low_watermark == until


def test_status_says_how_far_behind_and_how_soon_it_is_too_late(readers: Readers) -> None:
    left, _ = readers.world.active()
    loaded(readers.world, left)
    readers.world.clock.now = START + timedelta(hours=19)
    status = group_status(readers.store, "s", "g")
    assert (status.low_watermark, status.lag_seconds, status.stale) == (START, 19 * 3600, False)
    assert (status.seconds_until_expiry, status.counts) == (5 * 3600, {"created": 2})
    readers.world.clock.now = START + timedelta(hours=19.2)
    assert group_status(readers.store, "s", "g").stale
    readers.plan()
    assert group_status(readers.store, "s", "g").open_chunks == 1
    set_options(readers.store, "s", ChangeStreamOptions(retention=timedelta(days=7)))
    assert not group_status(readers.store, "s", "g").stale


# --- retention


def test_records_that_expired_before_they_were_read_stop_the_group(readers: Readers) -> None:
    left, right = readers.world.active()
    loaded(readers.world, left, right)
    readers.wave()
    loaded(readers.world, right)
    readers.world.clock.go(timedelta(days=1, hours=1))
    readers.world.opened()
    assert readers.plan(max_chunks=1).chunks[0].token == right.token  # old, and still there
    assert expire_before(readers.store, "s") == readers.world.clock.now - timedelta(days=1)
    with pytest.raises(PartitionExpired, match="consumer group 'g' of change stream s") as caught:
        readers.plan()
    assert isinstance(caught.value, OutOfRange)
    assert caught.value.value == right.token
    assert readers.plan(token=left.token).chunks == ()
    assert forget(readers.store, "s").partitions == 0
    reset_group(readers.store, "s", "g", "earliest")
    assert plan_wave(readers.store, "s", "g", run="r", max_chunks=9, max_rows=9).chunks == ()


def test_a_group_that_lost_no_record_goes_on_behind_what_was_expired(readers: Readers) -> None:
    """It was away longer than the retention, and only commits without changes were captured meanwhile. A chunk that
    began there would be refused by the log.
    """
    world = readers.world
    left, right = world.active()
    loaded(world, left)
    readers.wave()
    pause_group(readers.store, "s", "g")
    loaded(world)
    world.clock.go(timedelta(days=1, hours=1))
    expired = expire_before(readers.store, "s")
    at = world.clock.now + timedelta(seconds=1)
    children = split(world, left, 9, segment(right.token, at, 5))
    loaded(world, children[0])
    resume_group(readers.store, "s", "g")
    seen = {chunk.token: chunk for chunk in readers.wave()[0].chunks}
    assert seen.keys() == {right.token, children[0].token}
    assert all(chunk.start.at > expired for chunk in seen.values())
    assert (seen[right.token].start, seen[right.token].expected) == (Position(at), 5)
    readers.wave()
    assert finish(readers.store, "s", "g", run="r1") == 0


def test_a_child_whose_parent_is_behind_is_not_moved_past_its_turn(readers: Readers) -> None:
    """The parent's rows were expired: that is still said."""
    world = readers.world
    left, _ = world.active()
    loaded(world, left)
    children = split(world, left, 9)
    world.clock.go(timedelta(days=1, hours=1))
    loaded(world, *children)
    expire_before(readers.store, "s")
    with pytest.raises(PartitionExpired) as caught:
        readers.plan()
    assert caught.value.value == left.token
    assert [one.state for one in readers.all().values()] == [PartitionState.CREATED] * 2


def test_what_all_have_read_and_retention_has_passed_is_forgotten(readers: Readers) -> None:
    left, right = readers.world.active()
    loaded(readers.world, left, right)
    children = split(readers.world, left, 9)
    while readers.wave()[0].chunks:
        pass
    loaded(readers.world, *children)
    while readers.wave()[0].chunks:
        pass
    readers.world.clock.go(timedelta(days=2))
    readers.world.opened()
    readers.commit()
    assert forget(readers.store, "s") == Forgotten(0, 0, 0, 0)  # nobody was told that it may go
    expire_before(readers.store, "s")
    assert forget(readers.store, "s") == Forgotten(partitions=1, group_partitions=1, chunks=4, batches=2)
    assert forget(readers.store, "s") == Forgotten(0, 0, 0, 0)
    readers.check()
    loaded(readers.world, *readers.world.active())
    assert [chunk.number for chunk in readers.wave()[0].chunks] == [1, 1, 1]
    create_group(readers.store, "s", "h", "earliest")
    require_invariants(readers.store, "s")


def test_what_is_forgotten_ends_with_a_batch_so_that_a_group_may_start_amid_one(readers: Readers) -> None:
    left, _ = readers.world.active()
    loaded(readers.world, left)
    readers.wave()
    at = readers.world.clock.now + timedelta(seconds=1)
    readers.world.batch(segment(left.token, at, 5))
    while readers.wave()[0].chunks:
        pass
    readers.world.clock.now = at + timedelta(days=1, seconds=20)
    readers.world.opened()
    readers.commit()
    amid = expire_before(readers.store, "s")
    assert at < amid < at + MINUTE
    assert forget(readers.store, "s").chunks == 1
    create_group(readers.store, "s", "h", "earliest")
    (chunk,) = plan_wave(readers.store, "s", "h", run="r", max_chunks=9, max_rows=9).chunks
    assert (chunk.token, chunk.start, chunk.expected) == (left.token, Position(amid), 5)


def _of(partition: Partition) -> tuple[int, int]:
    return partition.lo, partition.hi


def _other(readers: Readers, chunk: Chunk) -> str:
    return next(one.token for one in readers.world.active() if one.token != chunk.token)
