"""Keeps changing the shop: orders are placed, sent and cancelled; rows move to other keys; some work is undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replication.writer import LONG_NOTE, Act, ShopWriter

__all__ = ["Writer"]


class Writer(ShopWriter):
    """The writer of a PostgreSQL; `connection` is one of psycopg2."""

    def __init__(self, connection: Any, *, seed: int = 0, pause: float = 0.02) -> None:
        import psycopg2

        super().__init__(connection, psycopg2.Error, seed=seed, pause=pause)

    def _acts(self) -> Sequence[Act]:
        often = (_visit, self._place_order, self._move_on, self._change_customer)
        return (*often, *often, self._change_note, self._new_customer, self._cancel, self._forget_visits)

    def _begin(self, cursor: Any) -> None:
        cursor.execute("BEGIN")

    def _end(self, cursor: Any, *, undone: bool) -> None:
        cursor.execute("SELECT txid_current()")
        (transaction,) = cursor.fetchone()
        cursor.execute("ROLLBACK" if undone else "COMMIT")
        if not undone:
            cursor.execute("INSERT INTO journal.commits VALUES (%s, pg_current_wal_lsn())", (transaction,))

    def _place_order(self, cursor: Any) -> None:
        self._last_order += 1
        order, customer = self._last_order, self._customer()
        cursor.execute(
            "INSERT INTO shop.orders VALUES (%s, %s, 'placed', clock_timestamp(), NULL, %s)",
            (order, customer, self._random.random() * 40),
        )
        for line in range(1, self._random.randint(2, 4)):
            note = None if self._random.random() < 0.5 else f"note {order} " * self._random.choice((1, LONG_NOTE // 10))
            cursor.execute(
                "INSERT INTO shop.order_items VALUES (%s, %s, %s, %s, %s, %s)",
                (
                    order,
                    line,
                    f"product {order % 50}",
                    self._random.randint(1, 9),
                    self._random.randint(1, 20_000) / 100,
                    note,
                ),
            )

    def _move_on(self, cursor: Any) -> None:
        cursor.execute(
            "UPDATE shop.orders SET status = CASE status WHEN 'placed' THEN 'paid' ELSE 'sent' END,"
            " promised_for = localtimestamp WHERE id = %s",
            (self._order(),),
        )
        # The note is not touched: if it is long, the log does not have it.
        cursor.execute("UPDATE shop.order_items SET quantity = quantity %% 9 + 1 WHERE order_id = %s", (self._order(),))

    def _change_customer(self, cursor: Any) -> None:
        cursor.execute(
            "UPDATE shop.customers SET credit = credit + 1.25, city = %s, interests = array_append(interests, %s)"
            " WHERE id = %s",
            (
                self._random.choice(("Busan", "Lyon", None)),
                "chess",
                self._customer(),
            ),
        )

    def _new_customer(self, cursor: Any) -> None:
        self._last_customer += 1
        cursor.execute(
            "INSERT INTO shop.customers VALUES (%s, %s, 'Quito', current_date, 0, false, '{}')",
            (self._last_customer, f"Customer {self._last_customer}"),
        )

    def _forget_visits(self, cursor: Any) -> None:
        cursor.execute("DELETE FROM shop.visits WHERE ctid IN (SELECT ctid FROM shop.visits LIMIT 2)")


def _visit(cursor: Any) -> None:
    cursor.execute(
        "INSERT INTO shop.visits VALUES (clock_timestamp(), NULL, '/', 12), (clock_timestamp(), 7, '/b', NULL)"
    )
