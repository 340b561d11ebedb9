"""A table as of one exact place of the log, read by one session while others write."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from tests.databases.mysql.captured import BinlogWorld
from tidemark.errors import BackfillGaveWay, ObjectNotReplicable
from tidemark.replication.model.replication import ObjectName
from tidemark.replication.planning.positions import FilePlace
from tidemark.replication.sources.mysql.pinned import PinnedRows, pinned_rows

BAG = "CREATE TABLE bag (n INT, who INT)"


class _Writers:
    """Sessions that insert and delete rows of `bag` in transactions, with a pause between two."""

    def __init__(self, world: BinlogWorld, number: int) -> None:
        self._world, self._ending = world, threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(who,), daemon=True) for who in range(number)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(30)

    def _write(self, who: int) -> None:
        connection, n = self._world.server.connection(self._world.database), 0
        with closing(connection), connection.cursor() as cursor:
            while not self._ending.wait(0.01):
                n += 1
                cursor.execute("INSERT INTO bag VALUES (%s, %s), (%s, %s)", (n, who, n, who))
                if n % 3 == 0:
                    cursor.execute("DELETE FROM bag WHERE who = %s AND n = %s LIMIT 1", (who, n - 2))
                connection.commit()


def _pinned(world: BinlogWorld, table: str = "bag") -> Any:
    address = replace(world.address, database=world.database)
    return pinned_rows(address, ObjectName(world.database, table), name=table)


def _rows(pinned: PinnedRows, query: str = "SELECT n, who FROM bag", first: str = "SELECT 1") -> list[Any]:
    with closing(pinned.chunks(query, first=first, variables={}, gave_way=lambda: None)) as chunks:
        return [row for chunk in chunks for row in chunk]


def _after(world: BinlogWorld, place: FilePlace) -> list[tuple[int, int]]:
    """The rows of `bag` by all events since it was made, up to a place."""
    rows: list[tuple[int, int]] = []
    for event in world.events(place.position):
        found = json.loads(event["payload"])
        row = int(found["n"]), int(found["who"])
        if str(event["change"]) == "DELETE":
            rows.remove(row)
        else:
            rows.append(row)
    return rows


def test_it_has_each_change_before_its_place_and_none_behind_it(world: BinlogWorld) -> None:
    world.sql(BAG)
    world.replicate("bag")
    begin, copies = world.position, []
    with _Writers(world, 3):
        for _ in range(8):
            time.sleep(0.1)
            with _pinned(world) as pinned:
                time.sleep(0.05)  # the writers go on before it reads
                copies.append((pinned.place, sorted(_rows(pinned))))
    assert len(copies[-1][1]) > len(copies[0][1]) > 0
    for place, rows in copies:
        world.position, world.schemas = begin, {}
        assert rows == sorted(_after(world, place))


def test_it_holds_nothing_once_it_has_read_or_was_left(world: BinlogWorld) -> None:
    world.sql(BAG, "INSERT INTO bag VALUES (1, 1)", *["INSERT INTO bag SELECT * FROM bag"] * 16)
    with _pinned(world) as pinned:
        assert len(_rows(pinned)) == 2**16
        world.sql("ALTER TABLE bag ADD COLUMN more INT")
    with _pinned(world) as pinned:
        chunks = pinned.chunks("SELECT * FROM bag", first="SELECT 1", variables={}, gave_way=lambda: None)
        assert len(next(chunks)) == 50_000
        chunks.close()
        world.sql("ALTER TABLE bag DROP COLUMN more")


def test_an_engine_without_snapshots_is_refused_by_name(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE bag (n INT) ENGINE = MyISAM")
    with pytest.raises(ObjectNotReplicable, match=r"MyISAM has no snapshots.* ENGINE = InnoDB"), _pinned(world):
        pass


def test_a_reader_whose_table_nobody_holds_gives_way(world: BinlogWorld) -> None:
    world.sql(BAG)
    with _pinned(world) as pinned, pytest.raises(BackfillGaveWay):
        _rows(pinned, first="SELECT EXP(710 + RAND())")
