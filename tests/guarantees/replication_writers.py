"""Writers of a source at random: several connections whose transactions overlap, driven by one seed.

One thread drives all connections, step by step, so that a seed gives the same statements again; a statement that would
wait for another transaction is given up after some milliseconds, and its transaction with it or its savepoint.
"""

from __future__ import annotations

import io
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg2
import psycopg2.errors

from tests.guarantees.replication_tables import SourceTable, quoted
from tests.guarantees.replication_values import any_value, big_text
from tidemark.model.source_address import SourceAddress

__all__ = ["Writers", "opened"]

_REFUSED = (
    psycopg2.errors.UniqueViolation,
    psycopg2.errors.LockNotAvailable,
    psycopg2.errors.DeadlockDetected,
    psycopg2.errors.NotNullViolation,
    psycopg2.errors.ObjectInUse,
)
_ACTS = {
    "insert": 26, "update": 22, "update_wide": 6, "delete": 8, "move": 7, "move_and_update": 4, "swap": 5, "shift": 1,
    "upsert": 4, "twice": 4, "many_tables": 3, "savepoint": 5, "back": 4, "copy": 4, "commit": 16, "rollback": 3,
    "truncate": 0.5, "ddl": 1.2,
}  # fmt: skip
_ADDED = (
    "integer", "text", "integer DEFAULT 7", "text DEFAULT 'so ''it'' is'", "boolean NOT NULL DEFAULT true",
    "numeric(12,2) DEFAULT 1.5", "timestamptz DEFAULT now()", "smallint DEFAULT -1", "date",
    "integer[] DEFAULT '{1,NULL}'", "bytea DEFAULT '\\x00ff'", "double precision DEFAULT 'NaN'",
)  # fmt: skip
_WIDER = {"smallint": "integer", "integer": "bigint", "real": "double precision", "varchar(40)": "text"}


@contextmanager
def opened(address: SourceAddress) -> Iterator[Any]:
    """A connection in autocommit, as superuser."""
    connection = psycopg2.connect(
        host=address.host, port=address.port, dbname=address.database, user=address.user, password=address.password
    )
    connection.autocommit = True
    try:
        yield connection
    finally:
        connection.close()


class _Session:
    """A connection, and what its open transaction has."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self.connection = connect()
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        self.cursor.execute("SET lock_timeout = '15ms'; SET timezone = 'Asia/Kolkata'; SET intervalstyle = 'postgres'")
        self.open = False
        self.savepoints = 0

    def run(self, text: str, values: Sequence[Any] = ()) -> int:
        if not self.open:
            self.cursor.execute("BEGIN")
            self.open = True
        self.cursor.execute(text, list(values))
        return int(self.cursor.rowcount)

    def end(self, how: str) -> None:
        if self.open:
            self.cursor.execute(how)
        self.open, self.savepoints = False, 0

    def give_up(self) -> None:
        """After a statement that was refused."""
        if self.savepoints:
            self.cursor.execute(f"ROLLBACK TO SAVEPOINT s{self.savepoints}")
        else:
            self.end("ROLLBACK")


class Writers:
    """`step()` does one act of one connection. `only` leaves tables alone; `without` names acts that are not done."""

    def __init__(
        self,
        address: SourceAddress,
        tables: Sequence[SourceTable],
        seed: int,
        *,
        connections: int = 3,
        without: Sequence[str] = (),
    ) -> None:
        self.chance = random.Random(seed)
        self.tables = tuple(tables)
        self.done: Counter[str] = Counter()
        self._acts = {name: weight for name, weight in _ACTS.items() if name not in without}
        self._connect = lambda: psycopg2.connect(
            host=address.host, port=address.port, dbname=address.database, user=address.user, password=address.password
        )
        self._count = connections
        self._sessions: list[_Session] = []

    def step(self) -> None:
        """One act. Raises psycopg2.OperationalError when the server goes."""
        if not self._sessions:
            self._sessions = [_Session(self._connect) for _ in range(self._count)]
        session = self.chance.choice(self._sessions)
        (act,) = self.chance.choices(list(self._acts), list(self._acts.values()))
        table = self.chance.choice(self.tables)
        try:
            getattr(self, f"_{act}")(session, table)
            self.done[act] += 1
        except _REFUSED:
            session.give_up()
            self.done["refused"] += 1

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def settle(self) -> None:
        """Every transaction ends, one way or the other, and every connection."""
        for session in self._sessions:
            session.end(self.chance.choice(("COMMIT", "COMMIT", "ROLLBACK")))
            session.connection.close()
        self._sessions = []

    def finish(self) -> None:
        """`settle`, then a change of every table: a log tells of new columns with the next change of their table."""
        self.settle()
        session = _Session(self._connect)
        for table in self.tables:
            self._until_accepted(self._upsert, session, table)
        session.end("COMMIT")
        session.connection.close()

    def empty(self) -> None:
        """`settle`, then each table is emptied between two changes: its events take several writes to the target."""
        self.settle()
        session = _Session(self._connect)
        for table in self.tables:
            self._until_accepted(self._upsert, session, table)
            session.run(f"TRUNCATE {table.sql}")
            self._until_accepted(self._insert, session, table)
        session.end("COMMIT")
        session.connection.close()

    @staticmethod
    def _until_accepted(act: Callable[[_Session, SourceTable], None], session: _Session, table: SourceTable) -> None:
        """Again with other values as long as the table's constraints refuse them."""
        session.run("SAVEPOINT accepted")
        for _ in range(1_000):
            try:
                act(session, table)
                return
            except _REFUSED:
                session.run("ROLLBACK TO SAVEPOINT accepted")
        raise AssertionError("no values were accepted")

    def forget(self) -> None:
        """The server is gone, and with it whatever was open."""
        for session in self._sessions:
            session.connection.close()
        self._sessions = []

    @contextmanager
    def at_work(self, pause: float = 0.002, most: int = 1_000_000) -> Iterator[None]:
        """They write in the background meanwhile, so many seconds between acts, at most so many acts; a server that
        goes is waited for.
        """
        stop, failures = threading.Event(), []

        def work() -> None:
            for _ in range(most):
                if stop.is_set():
                    return
                try:
                    self.step()
                except (psycopg2.OperationalError, psycopg2.InterfaceError):
                    self.forget()
                    time.sleep(0.05)
                except psycopg2.Error as error:
                    failures.append(error)
                    return
                time.sleep(pause)
            self.settle()  # an open transaction holds up every new slot

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if failures:
            raise failures[0]

    # Acts: the names are those of _ACTS.

    def _insert(self, session: _Session, table: SourceTable) -> None:
        rows = [table.row(self.chance) for _ in range(self.chance.choice((1, 1, 3)))]
        conflict = "ON CONFLICT DO NOTHING" if table.key and self.chance.random() < 0.8 else ""
        names = ", ".join(map(quoted, table.columns))
        one = "(" + ", ".join(f"%s::{native}" for native in table.columns.values()) + ")"
        values = [value for row in rows for value in row.values()]
        session.run(f"INSERT INTO {table.sql} ({names}) VALUES {', '.join([one] * len(rows))} {conflict}", values)

    def _upsert(self, session: _Session, table: SourceTable) -> None:
        if not table.key:
            self._insert(session, table)
            return
        row, (changed, values) = table.row(self.chance), self._assignments(table)
        names, marks = ", ".join(map(quoted, row)), ", ".join(f"%s::{native}" for native in table.columns.values())
        keys = ", ".join(map(quoted, table.key))
        session.run(
            f"INSERT INTO {table.sql} ({names}) VALUES ({marks}) ON CONFLICT ({keys}) DO UPDATE SET {changed}",
            [*row.values(), *values],
        )

    def _update(self, session: _Session, table: SourceTable) -> None:
        where, key = self._one(table)
        changed, values = self._assignments(table)
        session.run(f"UPDATE {table.sql} SET {changed} WHERE {where}", [*values, *key])

    def _twice(self, session: _Session, table: SourceTable) -> None:
        """A row in a transaction again and again."""
        where, key = self._one(table)
        for _ in range(3):
            changed, values = self._assignments(table)
            session.run(f"UPDATE {table.sql} SET {changed} WHERE {where}", [*values, *key])
        if self.chance.random() < 0.5:
            session.run(f"DELETE FROM {table.sql} WHERE {where}", key)
            self._insert(session, table)

    def _update_wide(self, session: _Session, table: SourceTable) -> None:
        changed, values = self._assignments(table)
        session.run(f"UPDATE {table.sql} SET {changed} WHERE {self.chance.choice(('true', 'random() < 0.1'))}", values)

    def _delete(self, session: _Session, table: SourceTable) -> None:
        where, key = self._one(table)
        session.run(f"DELETE FROM {table.sql} WHERE {where}", key)

    def _move(self, session: _Session, table: SourceTable) -> None:
        """A row gets another key, its values as they are."""
        if table.key:
            where, key = self._one(table)
            new = table.keys(self.chance)
            session.run(f"UPDATE {table.sql} SET {self._new_key(table)} WHERE {where}", [*new, *key])

    def _move_and_update(self, session: _Session, table: SourceTable) -> None:
        if table.key:
            where, key = self._one(table)
            changed, values = self._assignments(table)
            new = [*table.keys(self.chance), *values]
            session.run(f"UPDATE {table.sql} SET {self._new_key(table)}, {changed} WHERE {where}", [*new, *key])

    def _swap(self, session: _Session, table: SourceTable) -> None:
        """Two rows change keys by way of a third, in one transaction."""
        if not table.key:
            return
        where, one = self._one(table)
        _, other = self._one(table)
        spare = table.keys(self.chance)
        for old, new in ((one, spare), (other, one), (spare, other)):
            session.run(f"UPDATE {table.sql} SET {self._new_key(table)} WHERE {where}", [*new, *old])

    def _shift(self, session: _Session, table: SourceTable) -> None:
        """Every key of a table moves away and back."""
        if len(table.key) == 1 and table.columns[table.key[0]] in ("bigint", "integer"):
            name = quoted(table.key[0])
            session.run(f"UPDATE {table.sql} SET {name} = {name} + 1000")
            if self.chance.random() < 0.7:
                self._update_wide(session, table)
            session.run(f"UPDATE {table.sql} SET {name} = {name} - 1000")

    def _many_tables(self, session: _Session, table: SourceTable) -> None:
        for each in self.chance.sample(self.tables, k=min(3, len(self.tables))):
            self.chance.choice((self._insert, self._update, self._delete))(session, each)

    def _savepoint(self, session: _Session, table: SourceTable) -> None:
        session.run(f"SAVEPOINT s{session.savepoints + 1}")
        session.savepoints += 1

    def _back(self, session: _Session, table: SourceTable) -> None:
        if session.savepoints:
            at = self.chance.randrange(1, session.savepoints + 1)
            session.run(f"ROLLBACK TO SAVEPOINT s{at}")
            session.savepoints = at

    def _copy(self, session: _Session, table: SourceTable) -> None:
        """Rows by COPY; often one is there already, and all are refused."""
        rows = [table.row(self.chance) for _ in range(3)]
        lines = "".join("\t".join(_copied(value) for value in row.values()) + "\n" for row in rows)
        session.run("SELECT 1")
        names = ", ".join(map(quoted, table.columns)).replace("%%", "%")
        session.cursor.copy_expert(f"COPY {table.sql} ({names}) FROM STDIN", io.StringIO(lines))

    def _truncate(self, session: _Session, table: SourceTable) -> None:
        some = self.chance.sample(self.tables, k=self.chance.choice((1, 1, 2)))
        session.run(f"TRUNCATE {', '.join(one.sql for one in some)}")
        if self.chance.random() < 0.6:
            self._insert(session, some[0])

    def _commit(self, session: _Session, table: SourceTable) -> None:
        session.end("COMMIT")

    def _rollback(self, session: _Session, table: SourceTable) -> None:
        session.end("ROLLBACK")

    def _ddl(self, session: _Session, table: SourceTable) -> None:
        """A column comes, goes or gets wider, between changes of the same transaction."""
        if not table.alterable:
            return
        session.end("COMMIT")
        columns, added = dict(table.columns), table.added
        try:
            if self.chance.random() < 0.7:
                self._update(session, table)
            session.run(self._alteration(table))
            for _ in range(self.chance.randrange(3)):
                self.chance.choice((self._insert, self._update))(session, table)
            if self.chance.random() < 0.8:
                session.end("COMMIT")
        except _REFUSED:
            self.done["refused"] += 1
        if session.open:
            session.end("ROLLBACK")
            table.columns, table.added = columns, added

    def _alteration(self, table: SourceTable) -> str:
        """The statement, `columns` being as after it."""
        gone = [name for name in table.columns if name.startswith("added ")]
        wide = [name for name in table.values if table.columns[name] in _WIDER]
        what = self.chance.choice(("add", "add", "drop" if gone else "add", "widen" if wide else "add"))
        columns = dict(table.columns)
        if what == "add":
            table.added += 1
            name, native = f"added {table.added}", self.chance.choice(_ADDED)
            columns[name] = native.split(" DEFAULT")[0].removesuffix(" NOT NULL")
            text = f"ADD COLUMN {quoted(name)} {native}"
        elif what == "drop":
            name = self.chance.choice(gone)
            del columns[name]
            text = f"DROP COLUMN {quoted(name)}"
        else:
            name = self.chance.choice(wide)
            columns[name] = _WIDER[columns[name]]
            text = f"ALTER COLUMN {quoted(name)} TYPE {columns[name]}"
        table.columns = columns
        self.done[what] += 1
        return f"ALTER TABLE {table.sql} {text}"

    # Parts of statements.

    def _one(self, table: SourceTable) -> tuple[str, list[str]]:
        """A condition for one row at most by key, or for a few where there is none; its values."""
        if not table.key:
            return f"{quoted(table.values[0])} %% 7 = %s", [str(self.chance.randrange(7))]
        named = " AND ".join(f"{quoted(name)} = %s::{table.columns[name]}" for name in table.key)
        return named, list(table.keys(self.chance))

    def _new_key(self, table: SourceTable) -> str:
        return ", ".join(f"{quoted(name)} = %s::{table.columns[name]}" for name in table.key)

    def _assignments(self, table: SourceTable) -> tuple[str, list[str | None]]:
        """Some columns, so that the long texts of others stay as they are."""
        names = self.chance.sample(table.values, k=self.chance.randrange(1, min(3, len(table.values)) + 1))
        changed = ", ".join(f"{quoted(name)} = %s::{table.columns[name]}" for name in names)
        return changed, [self._value(table.columns[name], name) for name in names]

    def _value(self, native: str, name: str) -> str | None:
        if native == "text" and self.chance.random() < 0.3:
            return big_text(self.chance)
        value = any_value(native, self.chance)
        return "true" if value is None and native == "boolean" and name.startswith("added ") else value


def _copied(value: str | None) -> str:
    if value is None:
        return "\\N"
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
