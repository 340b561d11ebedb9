"""The shop in a MariaDB: its tables, and a journal of their changes by triggers, which gives any past state.

The journal does not depend on Tidemark, and is not replicated. Triggers do not know places in the binary log. So the
one writer of the shop asks for the end of the log after each transaction, and keeps it in `journal.commits`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from replication.compare import COLUMNS, TABLES

__all__ = ["FIRST", "commit", "fill", "make_shop", "make_user"]

FIRST = 1  # the number of the transaction that fills the shop

_TABLES = """
CREATE DATABASE shop CHARACTER SET utf8mb4;
CREATE TABLE shop.customers (
  id BIGINT PRIMARY KEY, name VARCHAR(60) NOT NULL, city VARCHAR(40), member_since DATE NOT NULL,
  credit DECIMAL(10, 2) NOT NULL, newsletter BOOLEAN NOT NULL, interests SET('tea', 'chess', 'music') NOT NULL);
CREATE TABLE shop.orders (
  id BIGINT PRIMARY KEY, customer_id BIGINT NOT NULL, status ENUM('placed', 'paid', 'sent') NOT NULL,
  placed_at TIMESTAMP(6) NOT NULL, promised_for DATETIME(6), weight DOUBLE);
CREATE TABLE shop.order_items (
  order_id BIGINT, line INT, product VARCHAR(60) NOT NULL, quantity SMALLINT UNSIGNED NOT NULL,
  price DECIMAL(10, 2) NOT NULL, note LONGTEXT, PRIMARY KEY (order_id, line));
CREATE TABLE shop.visits (at TIMESTAMP(6) NOT NULL, customer_id BIGINT, page VARCHAR(60) NOT NULL, took_ms INT);
CREATE DATABASE journal CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE journal.changes (
  number BIGINT AUTO_INCREMENT PRIMARY KEY, transaction BIGINT NOT NULL, relation VARCHAR(20) NOT NULL,
  deleted BOOLEAN NOT NULL, content LONGTEXT NOT NULL, KEY (relation));
CREATE TABLE journal.commits (transaction BIGINT PRIMARY KEY, file BIGINT NOT NULL, place BIGINT NOT NULL);
"""
_KEEP = "INSERT INTO journal.changes (transaction, relation, deleted, content) VALUES (@transaction, '{table}', "
_FILL = """
INSERT INTO shop.customers
  SELECT seq, CONCAT('Customer ', seq), ELT(1 + seq % 4, 'Busan', 'Lyon', 'Quito', NULL),
         DATE '2020-01-01' + INTERVAL seq % 2000 DAY, (seq * 37 % 100000) / 100, seq % 3 = 0,
         IF(seq % 5 = 0, '', 'tea,chess')
  FROM shop.seq_1_to_{customers};
INSERT INTO shop.orders
  SELECT seq, 1 + seq * 7 % {customers}, 1 + seq % 3, '2026-01-01 00:00:00.123456' + INTERVAL seq * 61 SECOND,
         IF(seq % 4 > 0, '2026-02-01' + INTERVAL seq HOUR, NULL), seq / 7e0
  FROM shop.seq_1_to_{orders};
INSERT INTO shop.order_items
  SELECT n.seq, line.seq, CONCAT('product ', (n.seq + line.seq) % 50), 1 + n.seq % 9,
         (n.seq * 13 + line.seq) % 20000 / 100,
         CASE WHEN n.seq % 20 = 0 THEN REPEAT('fragile; ', 400) WHEN n.seq % 3 = 0 THEN 'gift' END
  FROM shop.seq_1_to_{orders} AS n JOIN shop.seq_1_to_3 AS line ON line.seq <= 1 + n.seq % 3;
INSERT INTO shop.visits
  SELECT TIMESTAMP '2026-01-01 00:00:00' + INTERVAL seq * 7 SECOND, seq % 500, CONCAT('/page/', seq % 40), seq % 900
  FROM shop.seq_1_to_{visits};
"""


def make_shop(connection: Any) -> None:
    """Creates tables and journal on a server without them; `connection` is an autocommit one of pymysql."""
    with connection.cursor() as cursor:
        for statement in (*_statements(_TABLES), *_triggers()):
            cursor.execute(statement)


def make_user(connection: Any, user: str, password: str) -> None:
    """A user with the rights that a replication needs."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY '{password}'")
        cursor.execute(f"GRANT SELECT, PROCESS, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {user}@'127.0.0.1'")


def fill(connection: Any, *, orders: int = 10_000) -> int:
    """Inserts the shop's first rows in one transaction, and returns their number."""
    sizes = {"customers": max(orders // 5, 50), "orders": orders, "visits": orders}
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', @transaction = %s", (FIRST,))
        cursor.execute("BEGIN")
        for statement in _statements(_FILL.format(**sizes)):
            cursor.execute(statement)
        commit(cursor, FIRST)
        cursor.execute("SELECT count(*) FROM journal.changes")
        (rows,) = cursor.fetchone()
    return int(rows)


def commit(cursor: Any, transaction: int) -> None:
    """Commits, and keeps the end of the log. It is that of the transaction, as long as nobody else writes."""
    cursor.execute("COMMIT")
    cursor.execute("SHOW MASTER STATUS")
    name, place, *_ = cursor.fetchone()
    cursor.execute("INSERT INTO journal.commits VALUES (%s, %s, %s)", (transaction, name.rpartition(".")[2], place))


def _statements(text: str) -> Iterator[str]:
    """Statements of a text, in which a semicolon at the end of a line ends each."""
    yield from (one for one in re.split(r";\n", text) if one.strip())


def _triggers() -> Iterator[str]:
    for table in TABLES:
        begin, old, new = _KEEP.format(table=table), _as_json(table, "OLD"), _as_json(table, "NEW")
        kept = {"DELETE": [f"{begin}true, {old});"], "INSERT": [f"{begin}false, {new});"]}
        kept["UPDATE"] = [*kept["DELETE"], *kept["INSERT"]]
        for act, statements in kept.items():
            body = f"FOR EACH ROW BEGIN {' '.join(statements)} END"
            yield f"CREATE TRIGGER shop.{table}_{act.lower()} AFTER {act} ON shop.{table} {body}"


def _as_json(table: str, row: str) -> str:
    pairs = (f"'{name}', {row}.{name}" for name in COLUMNS[table] if name != "is_deleted")
    return f"JSON_OBJECT({', '.join(pairs)})"
