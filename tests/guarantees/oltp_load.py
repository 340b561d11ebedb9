"""The tables and the transactions of sysbench's `oltp_write_only`, by threads of Python."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pymysql

from tests.databases.mariadb import BinlogServer

__all__ = ["TABLES", "OltpWriter", "fill", "oltp_at_work"]

TABLES = ("sbtest1", "sbtest2", "sbtest3")
ROWS = 2000
_COLUMNS = "id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k_1 (k)"


def _text(chance: random.Random, groups: int) -> str:
    """`###########-###########-…`, as sysbench fills its columns."""
    return "-".join(f"{chance.randrange(10**11):011}" for _ in range(groups))


def fill(server: BinlogServer, database: str) -> None:
    """The tables, each with its first rows."""
    chance = random.Random(database)
    connection = server.connection(database)
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE TABLE {table} ({_COLUMNS})")
            rows = [(chance.randint(1, ROWS), _text(chance, 10), _text(chance, 5)) for _ in range(ROWS)]
            cursor.executemany(f"INSERT INTO {table} (k, c, pad) VALUES (%s, %s, %s)", rows)
    connection.commit()
    connection.close()


class OltpWriter(threading.Thread):
    """Transactions until `end`: an update of an indexed column, one of another, and a row that goes and comes again."""

    def __init__(self, server: BinlogServer, database: str, seed: int, rate: float) -> None:
        super().__init__(name=f"oltp {seed}", daemon=True)
        self._connection = server.connection(database)
        self._chance = random.Random(seed)
        self._pause = 1 / rate
        self._ending = threading.Event()
        self.committed = 0
        self.rolled_back = 0

    def run(self) -> None:
        while not self._ending.wait(self._pause):
            with self._connection.cursor() as cursor, suppress(pymysql.err.MySQLError):  # a deadlock
                self._transaction(cursor)
                self._connection.commit()
                self.committed += 1
                continue
            self._connection.rollback()
            self.rolled_back += 1

    def end(self) -> None:
        self._ending.set()
        self.join(60)
        assert not self.is_alive()
        self._connection.close()

    def _row(self) -> tuple[str, int]:
        """A row of a table, often one of few."""
        chance = self._chance
        return chance.choice(TABLES), chance.randint(1, ROWS if chance.random() < 0.5 else 20)

    def _transaction(self, cursor: Any) -> None:
        chance = self._chance
        table, key = self._row()
        cursor.execute(f"UPDATE {table} SET k = k + 1 WHERE id = %s", (key,))
        table, key = self._row()
        cursor.execute(f"UPDATE {table} SET c = %s WHERE id = %s", (_text(chance, 10), key))
        table, key = self._row()
        cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
        row = (key, chance.randint(1, ROWS), _text(chance, 10), _text(chance, 5))
        cursor.execute(f"INSERT INTO {table} (id, k, c, pad) VALUES (%s, %s, %s, %s)", row)


@contextmanager
def oltp_at_work(server: BinlogServer, database: str, *, writers: int = 4, rate: float = 10) -> Iterator[None]:
    """So many connections write `rate` transactions a second each, for as long as the context lasts."""
    at_work = [OltpWriter(server, database, seed, rate) for seed in range(writers)]
    for writer in at_work:
        writer.start()
    try:
        yield
        assert all(writer.is_alive() for writer in at_work)
    finally:
        for writer in at_work:
            writer.end()
    assert all(writer.committed > 0 for writer in at_work)
