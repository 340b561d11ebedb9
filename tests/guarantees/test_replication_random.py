"""A replication at random: writers of every kind while objects are backfilled, events captured and applied; when
they rest, every target is its source, row by row, and what has no key has each event of its history once.

One run, 200 by `make test-all`. A failing run is repeated by its seed alone, but for
how its jobs and its writers met in time.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.replication_world import ReplicationWorld, made_source
from tests.postgresql import PostgresServer
from tests.tiers import some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TABLES = ("orders", "lines", "Odd.Names", "kinds", "whole", "readings", "by_index", "visits", "days")


@pytest.mark.parametrize("seed", some(range(200), now=(0,)))
def test_targets_are_their_source_whatever_was_written_meanwhile(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    names = ("visits", *chance.sample([name for name in TABLES if name != "visits"], k=2))
    slow = () if seed % 10 == 9 else ("shift", "swap")  # each row of these is a part of its own in the target
    address, tables, writers = made_source(source_server, seed, names, without=slow)
    writers.run(150)
    writers.settle()  # what is there before anything is replicated
    world = ReplicationWorld(spark, address, tables, tmp_path, max_events=chance.choice((100, 500_000)))
    try:
        world.prepare()
        with writers.at_work(pause=0.03, most=300):
            world.turn("first", chance)
            world.turn("second", chance, share=0.6)
        writers.finish()
        world.catch_up()
        world.require_same()
    except Exception as error:
        error.add_note(f"seed {seed}, tables {names}, acts {dict(writers.done)}")
        raise
    finally:
        writers.settle()
        world.source.drop(world.replication)
        world.store.close()
