"""Loads from an S3-compatible store: odd names, pages that are counted, late names, and files that are removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.guarantees.load_world import LoadWorld, load_of, pipe_spec, run_request
from tests.object_store import BUCKET, ObjectStore, object_store_of
from tidemark.jobs.run import run
from tidemark.model.codec import to_plain
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.found_files import list_files
from tidemark.pipes.driver.pipe_queue import PipeQueue
from tidemark.pipes.model.copying import CopyOptions, Load
from tidemark.pipes.model.events import KEPT, Batch
from tidemark.pipes.model.jobs import COPY_FILES, CopyFiles

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def store(spark: SparkSession) -> Iterator[ObjectStore]:
    with object_store_of(spark) as running:
        yield running


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> LoadWorld:
    return LoadWorld(spark, tmp_path)


def load(world: LoadWorld, directory: str) -> Load:
    return replace(load_of(world.home), location=f"s3://{BUCKET}/{directory}")


def ran(world: LoadWorld, store: ObjectStore, directory: str, **limits: Any) -> Any:
    request = replace(run_request(world.home, **limits), load=load(world, directory))
    spec = replace(pipe_spec(world.home), request=to_plain(request))
    result = run(world.spark, spec, options=store.options, say=lambda text: None)
    assert result.error is None, result.error
    return result.report


def test_files_with_odd_names_are_loaded_once_and_late_ones_with_the_next_full_listing(
    world: LoadWorld, store: ObjectStore
) -> None:
    for number, name in enumerate(("m.csv", "n o%20p+q.csv", "sub/ü#.csv", "_no.csv")):
        store.put(f"odd/{name}", f"{number}\n".encode())
    assert ran(world, store, "odd")["files_loaded"] == 3
    store.put("odd/a late.csv", b"7\n")
    store.put("odd/z.csv", b"8\n")
    assert ran(world, store, "odd")["files_loaded"] == 1  # the one behind the greatest name
    assert ran(world, store, "odd", full_listing_seconds=0)["files_loaded"] == 1
    assert sorted(world.rows().elements()) == [0, 1, 2, 7, 8]


def test_a_pipe_that_moves_lists_all_names_of_its_new_place(world: LoadWorld, store: ObjectStore) -> None:
    store.put("old/z.csv", b"1\n")
    assert ran(world, store, "old")["files_loaded"] == 1
    store.put("new/a.csv", b"2\n")
    assert ran(world, store, "new")["files_loaded"] == 1
    store.put("new/b.csv", b"3\n")
    assert ran(world, store, "new")["files_loaded"] == 1
    assert sorted(world.rows().elements()) == [1, 2, 3]


def test_an_object_that_is_replaced_after_it_was_planned_is_not_loaded(world: LoadWorld, store: ObjectStore) -> None:
    """Its size and the second of its time may be those of before; its ETag is not."""
    meant = load(world, "replaced")
    for name in ("replaced", "stays"):
        store.put(f"replaced/{name}.csv", b"1\n")
    table = FilesTable.open(world.spark, run_request(world.home).queue, store.options, kept=KEPT)
    files = list_files(meant, store.options).table
    assert table.plan(Batch(1, meant, 0, "a run that died"), files, None, datetime.now(UTC), partial=False)
    store.put("replaced/replaced.csv", b"2\n")
    (failed,) = ran(world, store, "replaced")["failed"]
    assert (failed["file"], failed["status"]) == ("replaced.csv", "LOAD_FAILED")
    assert "changed while it was read" in failed["system_error"]
    assert ran(world, store, "replaced", prefix="replaced")["rows_loaded"] == 1
    assert sorted(world.rows().elements()) == [1, 2]


def test_a_listing_takes_the_pages_that_its_names_need_and_a_later_one_only_the_new(
    world: LoadWorld, store: ObjectStore
) -> None:
    for number in range(2_350):
        store.put(f"many/f{number:05}.csv", b"")
    meant = load(world, "many")
    table = FilesTable.open(world.spark, run_request(world.home).queue, store.options, kept=KEPT)
    queue = PipeQueue(world.spark, table, meant, store.options)
    now = datetime.now(UTC)
    listed, full = queue.listed(now, HOUR)
    assert (listed.count, listed.requests, full) == (2_350, 3, True)
    event = queue.listing_event(listed)
    assert event is not None
    table.append([event], now)
    store.put("many/g.csv", b"")
    later, full = queue.listed(now, HOUR)
    assert (later.count, later.requests, full) == (1, 1, False)
    assert list_files(meant, store.options, prefix="f0000").requests == 1


def test_loaded_files_are_removed_with_purge_and_failed_ones_stay(world: LoadWorld, store: ObjectStore) -> None:
    store.put("purged/good.csv", b"1\n")
    store.put("purged/bad.csv", b"x\n")
    meant = load(world, "purged")
    options = CopyOptions(on_error=meant.options.on_error, purge=True)
    request = CopyFiles(replace(meant, options=options), "a run")
    spec = replace(pipe_spec(world.home), kind=COPY_FILES.name, entry=COPY_FILES.entry, request=to_plain(request))
    result = run(world.spark, spec, options=store.options, say=lambda text: None)
    assert result.error is None, result.error
    assert store.keys("purged/") == ["purged/bad.csv"]
    assert sorted(world.rows().elements()) == [1]
