"""The shop: its tables, and a journal of their changes by triggers, which gives any past state.

A comparison needs the journal: it compares as of a position of the log, and the tables have changed since.
The journal does not depend on Tidemark, and is not replicated.
"""

from __future__ import annotations

from typing import Any

from replication.compare import TABLES

__all__ = ["fill", "make_shop"]

_TABLES = """
CREATE SCHEMA shop;
CREATE TABLE shop.customers (
  id bigint PRIMARY KEY, name text NOT NULL, city text, member_since date NOT NULL, credit numeric(10, 2) NOT NULL,
  newsletter boolean NOT NULL, interests text[] NOT NULL);
CREATE TABLE shop.orders (
  id bigint PRIMARY KEY, customer_id bigint NOT NULL, status text NOT NULL, placed_at timestamptz NOT NULL,
  promised_for timestamp, weight double precision);
CREATE TABLE shop.order_items (
  order_id bigint, line integer, product text NOT NULL, quantity smallint NOT NULL, price numeric(10, 2) NOT NULL,
  note text, PRIMARY KEY (order_id, line));
ALTER TABLE shop.order_items ALTER note SET STORAGE EXTERNAL;  -- a long note is stored outside its row (TOAST)
CREATE TABLE shop.visits (at timestamptz NOT NULL, customer_id bigint, page text NOT NULL, took_ms integer);
ALTER TABLE shop.visits REPLICA IDENTITY FULL;
"""
_JOURNAL = """
CREATE SCHEMA journal;
CREATE TABLE journal.changes (
  number bigserial PRIMARY KEY, transaction bigint NOT NULL, relation text NOT NULL, deleted boolean NOT NULL,
  content jsonb NOT NULL, wal pg_lsn NOT NULL);
CREATE TABLE journal.commits (transaction bigint PRIMARY KEY, done pg_lsn NOT NULL);
CREATE FUNCTION journal.keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO journal.changes (transaction, relation, deleted, content, wal)
    VALUES (txid_current(), TG_TABLE_NAME, true, to_jsonb(OLD), pg_current_wal_insert_lsn());
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO journal.changes (transaction, relation, deleted, content, wal)
    VALUES (txid_current(), TG_TABLE_NAME, false, to_jsonb(NEW), pg_current_wal_insert_lsn());
  END IF;
  RETURN NULL;
END $$;
"""
_FILL = """
INSERT INTO shop.customers
  SELECT n, 'Customer ' || n, (ARRAY['Busan', 'Lyon', 'Quito', NULL])[1 + n %% 4], date '2020-01-01' + n %% 2000,
         (n * 37 %% 100000) / 100.0, n %% 3 = 0, CASE WHEN n %% 5 = 0 THEN '{}' ELSE ARRAY['tea', 'no. ' || n %% 7] END
  FROM generate_series(1, %(customers)s) AS n;
INSERT INTO shop.orders
  SELECT n, 1 + n * 7 %% %(customers)s, (ARRAY['placed', 'paid', 'sent'])[1 + n %% 3],
         timestamptz '2026-01-01 00:00:00.123456+00' + n * interval '61 seconds',
         CASE WHEN n %% 4 > 0 THEN timestamp '2026-02-01' + n * interval '1 hour' END, n / 7.0
  FROM generate_series(1, %(orders)s) AS n;
INSERT INTO shop.order_items
  SELECT n, line, 'product ' || (n + line) %% 50, 1 + n %% 9, (n * 13 + line) %% 20000 / 100.0,
         CASE WHEN n %% 20 = 0 THEN repeat('fragile; ', 400) WHEN n %% 3 = 0 THEN 'gift' END
  FROM generate_series(1, %(orders)s) AS n, generate_series(1, 1 + n %% 3) AS line;
INSERT INTO shop.visits
  SELECT timestamptz '2026-01-01 00:00+00' + n * interval '7 seconds', n %% 500, '/page/' || n %% 40, n %% 900
  FROM generate_series(1, %(visits)s) AS n;
"""


def make_shop(connection: Any) -> None:
    """Creates tables and journal in an empty database; `connection` is an autocommit one of psycopg2."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES + _JOURNAL)
        for table in TABLES:
            cursor.execute(
                f"CREATE TRIGGER keep AFTER INSERT OR UPDATE OR DELETE ON shop.{table} "
                "FOR EACH ROW EXECUTE FUNCTION journal.keep()"
            )


def fill(connection: Any, *, orders: int = 10_000) -> int:
    """Inserts the shop's first rows and returns their number. They count as one transaction that has ended."""
    sizes = {"customers": max(orders // 5, 50), "orders": orders, "visits": orders}
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(_FILL, sizes)
        cursor.execute("SELECT txid_current()")
        (transaction,) = cursor.fetchone()
        cursor.execute("COMMIT")
        cursor.execute("INSERT INTO journal.commits VALUES (%s, pg_current_wal_lsn())", (transaction,))
        cursor.execute("ANALYZE")
        cursor.execute("SELECT count(*) FROM journal.changes")
        (rows,) = cursor.fetchone()
    return int(rows)
