"""The first files of a queue that fit a bound: of a batch of a pipe, and of a statement with SIZE_LIMIT."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidemark.pipes.driver.found_files import FOUND_SCHEMA
from tidemark.pipes.driver.planning_batches import chosen

MB = 1_000_000


def files(*sizes: int | None) -> pa.Table:
    rows = [{"file": f"f{number}.csv", "size": size} for number, size in enumerate(sizes)]
    return pa.Table.from_pylist(rows, FOUND_SCHEMA)


@pytest.mark.parametrize(
    ("sizes", "bytes_", "in_batch", "by_size_limit"),
    [
        ((10 * MB,) * 4, 25 * MB, 2, 3),
        ((10 * MB,) * 4, 20 * MB, 2, 3),
        ((10 * MB,) * 4, 19 * MB, 1, 2),
        ((10 * MB,) * 4, 1, 1, 1),
        ((10 * MB,) * 4, 100 * MB, 4, 4),
        ((None, None, 10 * MB), 1, 2, 3),
        ((), 1, 0, 0),
    ],
)
def test_a_batch_stays_below_its_bytes_and_a_size_limit_ends_with_the_file_that_exceeds_it(
    sizes: tuple[int, ...], bytes_: int, in_batch: int, by_size_limit: int
) -> None:
    batch = chosen(files(*sizes), 10, bytes_)
    assert (batch.files.num_rows, batch.left.num_rows) == (in_batch, len(sizes) - in_batch)
    assert chosen(files(*sizes), 10, bytes_, beyond=True).files.num_rows == by_size_limit
    assert chosen(files(*sizes), 2, None).files.num_rows == min(2, len(sizes))
