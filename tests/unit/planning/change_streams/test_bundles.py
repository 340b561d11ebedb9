"""Chunks are dealt out to tasks: all of them, each once, in order, and never to more tasks than Airflow allows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tidemark.change_streams.model.change_streams import Chunk, Position
from tidemark.change_streams.planning.bundles import in_bundles, label_of, most_chunks

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HALF = 0x8000


def chunk(token: str, number: int = 0, rows: int = 1) -> Chunk:
    start, end = (Position(BEGIN + timedelta(seconds=number + more)) for more in (0, 1))
    return Chunk("g", "s", "s", "g", token, number, start, end, rows, last=False)


def test_tokens_side_by_side_share_a_task_until_chunks_or_rows_are_enough() -> None:
    ranges = {f"t{n}": (n * 16, n * 16 + 16) for n in range(6)}
    chunks = [chunk(token, rows=40 if token == "t4" else 10) for token in reversed(ranges)]
    bundles = in_bundles(chunks, ranges, chunks_per_task=3, rows_per_task=45, max_tasks=10)
    assert [[one.token for one in bundle.chunks] for bundle in bundles] == [["t0", "t1", "t2"], ["t3"], ["t4"], ["t5"]]
    assert [bundle.range for bundle in bundles] == ["[0000, 0030)", "[0030, 0040)", "[0040, 0050)", "[0050, 0060)"]


def test_nothing_to_read_is_no_task() -> None:
    assert in_bundles([], {}, chunks_per_task=3, rows_per_task=45, max_tasks=10) == ()


def test_a_label_is_the_range_of_keys_in_hexadecimal() -> None:
    assert label_of([(0, HALF)]) == "[0000, 8000)"
    assert label_of([(HALF, 2 * HALF), (0, HALF)]) == "[0000, 10000)"
    assert label_of([(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]) == "[0000, 0001), [0002, 0003), [0004, 0005) and 2 more"


def test_no_more_is_planned_than_mapped_tasks_can_take() -> None:
    assert most_chunks(None, chunks_per_task=16, max_tasks=1024) == 16_384
    assert most_chunks(5, chunks_per_task=16, max_tasks=1024) == 5
    assert most_chunks(50_000, chunks_per_task=16, max_tasks=1024) == 16_384


def first_two(asked: tuple[int, int, int]) -> tuple[int, int]:
    return asked[:2]


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(0, 100)), max_size=60, unique_by=lambda x: x[:2]
    ),
    st.integers(1, 5),
    st.integers(1, 120),
    st.integers(1, 8),
)
def test_every_chunk_is_in_one_bundle_and_those_of_a_token_are_together_in_order(
    asked: list[tuple[int, int, int]], chunks_per_task: int, rows_per_task: int, max_tasks: int
) -> None:
    chunks = [chunk(f"t{token:02}", number, rows) for token, number, rows in asked]
    ranges = {f"t{n:02}": (n, n + 1) for n in range(31)}
    bundles = in_bundles(
        chunks, ranges, chunks_per_task=chunks_per_task, rows_per_task=rows_per_task, max_tasks=max_tasks
    )
    assert len(bundles) <= max_tasks
    flat = [(one.token, one.number) for bundle in bundles for one in bundle.chunks]
    assert flat == sorted((one.token, one.number) for one in chunks)
    homes = [{one.token for one in bundle.chunks} for bundle in bundles]
    assert sum(len(home) for home in homes) == len({one.token for one in chunks})
