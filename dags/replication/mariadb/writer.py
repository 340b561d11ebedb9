"""Keeps changing the shop: the acts of the PostgreSQL's writer, and the forms of a write that only MariaDB has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replication.mariadb.shop import FIRST, commit
from replication.writer import LONG_NOTE, Act, ShopWriter

__all__ = ["Writer"]


class Writer(ShopWriter):
    """The writer of a MariaDB; `connection` is one of pymysql."""

    def __init__(self, connection: Any, *, seed: int = 0, pause: float = 0.02) -> None:
        import pymysql

        super().__init__(connection, pymysql.err.MySQLError, seed=seed, pause=pause)
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")

    @property
    def number(self) -> int:
        """The number of the transaction that runs now, or of the next one."""
        return FIRST + 1 + self.transactions

    def _acts(self) -> Sequence[Act]:
        often = (_visit, self._place_order, self._move_on, self._change_customer)
        rare = (self._change_note, self._new_customer, self._cancel, _forget_visits, self._replace, self._put)
        return (*often, *often, *rare)

    def _begin(self, cursor: Any) -> None:
        cursor.execute("SET @transaction = %s", (self.number,))
        cursor.execute("BEGIN")

    def _end(self, cursor: Any, *, undone: bool) -> None:
        if undone:
            cursor.execute("ROLLBACK")
        else:
            commit(cursor, self.number)

    def _place_order(self, cursor: Any) -> None:
        self._last_order += 1
        order = self._last_order
        cursor.execute(
            "INSERT INTO shop.orders VALUES (%s, %s, 'placed', now(6), NULL, %s)",
            (order, self._customer(), self._random.random() * 40),
        )
        for line in range(1, self._random.randint(2, 4)):
            note = None if self._random.random() < 0.5 else f"note {order} " * self._random.choice((1, LONG_NOTE // 10))
            cursor.execute(
                "INSERT INTO shop.order_items VALUES (%s, %s, %s, %s, %s, %s)",
                (order, line, f"product {order % 50}", self._random.randint(1, 9), self._price(), note),
            )

    def _price(self) -> float:
        return self._random.randint(1, 20_000) / 100

    def _move_on(self, cursor: Any) -> None:
        cursor.execute(
            "UPDATE shop.orders SET status = IF(status = 'placed', 'paid', 'sent'), promised_for = now(6)"
            " WHERE id = %s",
            (self._order(),),
        )
        cursor.execute("UPDATE shop.order_items SET quantity = quantity %% 9 + 1 WHERE order_id = %s", (self._order(),))

    def _change_customer(self, cursor: Any) -> None:
        cursor.execute(
            "UPDATE shop.customers SET credit = credit + 1.25, city = %s, interests = %s WHERE id = %s",
            (
                self._random.choice(("Busan", "Lyon", None)),
                self._random.choice(("music", "tea,music", "")),
                self._customer(),
            ),
        )

    def _new_customer(self, cursor: Any) -> None:
        self._last_customer += 1
        cursor.execute(
            "INSERT INTO shop.customers VALUES (%s, %s, 'Quito', current_date, 0, false, '')",
            (self._last_customer, f"Customer {self._last_customer}"),
        )

    def _replace(self, cursor: Any) -> None:
        """Takes the row of the key away, if there is one, and inserts another."""
        cursor.execute(
            "REPLACE INTO shop.orders VALUES (%s, %s, 'paid', now(6), NULL, %s)",
            (self._order(), self._customer(), self._random.random() * 40),
        )

    def _put(self, cursor: Any) -> None:
        """Inserts a row, or changes that of the key."""
        cursor.execute(
            "INSERT INTO shop.order_items VALUES (%s, 1, 'gift card', 1, %s, NULL), (%s, 2, 'ribbon', 1, %s, NULL)"
            " ON DUPLICATE KEY UPDATE quantity = quantity %% 9 + 1, price = VALUES(price)",
            (self._order(), self._price(), self._order(), self._price()),
        )


def _visit(cursor: Any) -> None:
    cursor.execute("INSERT INTO shop.visits VALUES (now(6), NULL, '/', 12), (now(6), 7, '/b', NULL)")


def _forget_visits(cursor: Any) -> None:
    cursor.execute("DELETE FROM shop.visits LIMIT 2")
