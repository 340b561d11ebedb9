"""A thread that keeps changing a shop. Statements that only one source knows are in its folder."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["LONG_NOTE", "Act", "ShopWriter"]

Act = Callable[[Any], None]
RENUMBERED = 50  # keys move in one transaction of this many: it is rare, and costs a write of its own if a note is long
LONG_NOTE = 3_000  # characters: PostgreSQL stores it outside of its row


class ShopWriter(threading.Thread, ABC):
    """Runs transactions, one after another, until `stop`. With one writer, the order of its transactions is that of
    their commits, so a past state of the shop is known.

    `connection`: an autocommit one that nobody else uses. `errors`: of its driver. `pause`: seconds between
    transactions. After it has ended, `error` is the reason, or None after `stop`.
    """

    def __init__(self, connection: Any, errors: type[Exception], *, seed: int = 0, pause: float = 0.02) -> None:
        super().__init__(name="shop-writer", daemon=True)
        self.transactions = 0
        self.error: BaseException | None = None
        self._connection = connection
        self._errors = errors
        self._random = random.Random(seed)
        self._pause = pause
        self._ended = threading.Event()
        with connection.cursor() as cursor:
            cursor.execute("SELECT coalesce(max(id), 0) FROM shop.orders")
            (self._last_order,) = cursor.fetchone()
            cursor.execute("SELECT coalesce(max(id), 0) FROM shop.customers")
            (self._last_customer,) = cursor.fetchone()

    def run(self) -> None:
        """Runs one transaction after another."""
        try:
            while not self._ended.is_set():
                self.step()
                time.sleep(self._pause)
        except self._errors as error:
            self.error = error

    def stop(self) -> None:
        """Returns when its last transaction has ended."""
        self._ended.set()
        if self.ident is not None:
            self.join(timeout=30)

    def step(self) -> None:
        """One transaction of one or some acts; every tenth is rolled back, every fifth has a part of it undone."""
        acts = (self._renumber,) if self.transactions % RENUMBERED == 0 else self._acts()
        undone = self._random.random() < 0.1
        with self._connection.cursor() as cursor:
            self._begin(cursor)
            for act in self._random.choices(acts, k=self._random.randint(1, 4)):
                act(cursor)
            if self._random.random() < 0.2:
                cursor.execute("SAVEPOINT tried")
                self._random.choice(acts)(cursor)
                cursor.execute("ROLLBACK TO SAVEPOINT tried")
            self._end(cursor, undone=undone)
        self.transactions += 1

    @abstractmethod
    def _acts(self) -> Sequence[Act]:
        """The usual acts, a frequent one several times."""

    @abstractmethod
    def _begin(self, cursor: Any) -> None:
        """Begins a transaction."""

    @abstractmethod
    def _end(self, cursor: Any, *, undone: bool) -> None:
        """Rolls the transaction back, or commits it and tells the journal of its place in the log."""

    def _order(self) -> int:
        return self._random.randint(1, max(self._last_order, 1))

    def _customer(self) -> int:
        return self._random.randint(1, max(self._last_customer, 1))

    def _change_note(self, cursor: Any) -> None:
        note = self._random.choice((None, "gift", "wrap it " * (LONG_NOTE // 8)))
        cursor.execute("UPDATE shop.order_items SET note = %s WHERE order_id = %s", (note, self._order()))

    def _cancel(self, cursor: Any) -> None:
        order = self._order()
        cursor.execute("DELETE FROM shop.order_items WHERE order_id = %s", (order,))
        cursor.execute("DELETE FROM shop.orders WHERE id = %s", (order,))

    def _renumber(self, cursor: Any) -> None:
        """The key itself changes, and with it a long note moves that the log may not have."""
        self._last_order += 1
        order = self._order()
        cursor.execute("UPDATE shop.orders SET id = %s WHERE id = %s", (self._last_order, order))
        cursor.execute("UPDATE shop.order_items SET order_id = %s WHERE order_id = %s", (self._last_order, order))
