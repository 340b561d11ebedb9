"""Two databases as people have them, and what writes to them: pgbench, and a shop that rents films."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.guarantees.replication_tables import SCHEMA, SourceTable
from tests.postgresql import PASSWORD, USER, PostgresServer

__all__ = ["LOADS", "Load"]


def _table(name: str, columns: dict[str, str], *key: str, suffix: str = "", more: tuple[str, ...] = ()) -> SourceTable:
    return SourceTable(name, columns, key, lambda _: (), suffix=suffix, more=more)


@dataclass(frozen=True)
class Load:
    """`tables` are compared; `setup` makes what `pgbench -i` does not; `script` is a transaction, or None for the
    tables and the transaction of pgbench.
    """

    tables: tuple[SourceTable, ...]
    setup: tuple[str, ...] = ()
    script: str | None = None

    def fill(self, server: PostgresServer, database: str) -> None:
        """The schema with its first rows."""
        for text in (f"CREATE SCHEMA {SCHEMA}", f"ALTER DATABASE {database} SET search_path = {SCHEMA}"):
            server.sql(text, database)
        if self.script is None:
            _pgbench(server, database, "-i", "-q", "-s", "1").check_returncode()
        for text in self.setup:
            server.sql(text, database)

    @contextmanager
    def at_work(self, server: PostgresServer, database: str, home: Path, *, rate: int = 40) -> Iterator[None]:
        """Four clients write `rate` transactions a second for as long as the context lasts."""
        file = home / "transaction.sql"
        file.write_text(self.script or "")
        own = ("-f", str(file)) if self.script else ()
        command = _command(server, database, "-n", "-c", "4", "-T", "3600", "-R", str(rate), *own)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
            try:
                yield
                assert running.poll() is None, running.stderr.read() if running.stderr else ""
            finally:
                running.terminate()


def _command(server: PostgresServer, database: str, *arguments: str) -> list[str]:
    address = f"host=127.0.0.1 port={server.port} user={USER} password='{PASSWORD}' dbname={database}"
    return [str(Path(server.programs) / "pgbench"), *arguments, address]


def _pgbench(server: PostgresServer, database: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(server, database, *arguments), capture_output=True, text=True, timeout=300)


PGBENCH = Load(
    tables=(
        _table("pgbench_branches", {"bid": "integer", "bbalance": "integer", "filler": "char(88)"}, "bid"),
        _table("pgbench_tellers", {"tid": "integer", "bid": "integer", "tbalance": "integer"}, "tid"),
        _table("pgbench_accounts", {"aid": "integer", "bid": "integer", "abalance": "integer"}, "aid"),
        _table(
            "pgbench_history",
            {"tid": "integer", "bid": "integer", "aid": "integer", "delta": "integer", "mtime": "timestamp"},
        ),
    ),
    setup=("ALTER TABLE pgbench_history REPLICA IDENTITY FULL",),
)

_FILMS = _table(
    "films",
    {
        "film_id": "integer",
        "title": "text",
        "rating": "shop.rating",
        "released": "shop.year",
        "rate": "numeric(12,2)",
        "features": "text[]",
        "words": "tsvector",
        "changed": "timestamptz",
    },
    "film_id",
)
_CASTS = _table(
    "film_actors", {"actor_id": "integer", "film_id": "integer", "changed": "timestamptz"}, "actor_id", "film_id"
)
_CUSTOMERS = _table(
    "customers",
    {"customer_id": "integer", "name": "varchar(40)", "active": "boolean", "since": "date", "photo": "bytea"},
    "customer_id",
)
_RENTALS = _table(
    "rentals",
    {"rental_id": "bigint", "film_id": "integer", "customer_id": "integer", "lent": "timestamp", "back": "timestamp"},
    "rental_id",
)
_PAYMENTS = _table(
    "payments",
    {"payment_id": "bigint", "paid": "date", "rental_id": "bigint", "amount": "numeric(12,2)"},
    "payment_id",
    "paid",
    suffix="PARTITION BY RANGE (paid)",
    more=tuple(
        f"CREATE TABLE {SCHEMA}.payments_{year} PARTITION OF {{t}}"
        f" FOR VALUES FROM ('{year}-01-01') TO ('{year + 1}-01-01')"
        for year in (2025, 2026)
    ),
)
_MADE = (_FILMS, _CASTS, _CUSTOMERS, _RENTALS, _PAYMENTS)

RENTALS = Load(
    tables=_MADE,
    setup=(
        "CREATE TYPE shop.rating AS ENUM ('G', 'PG', 'PG-13', 'R')",
        "CREATE DOMAIN shop.year AS integer CHECK (VALUE BETWEEN 1900 AND 2100)",
        *(text for table in _MADE for text in table.create()),
        "CREATE SEQUENCE shop.rental_numbers",
        "CREATE FUNCTION shop.touch() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.changed = clock_timestamp(); RETURN NEW; END $$",
        "CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON shop.films FOR EACH ROW EXECUTE FUNCTION shop.touch()",
        "CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON shop.film_actors FOR EACH ROW EXECUTE FUNCTION shop.touch()",
        "ALTER TABLE shop.rentals ADD FOREIGN KEY (film_id) REFERENCES shop.films ON DELETE CASCADE",
        "INSERT INTO shop.films SELECT n, 'Film ' || n, 'PG', 1990 + n % 30, n % 5 + 0.99,"
        " ARRAY['Trailers', 'Deleted ' || n], to_tsvector('simple', 'film number ' || n)"
        " FROM generate_series(1, 1000) n",
        "INSERT INTO shop.film_actors SELECT a, f FROM generate_series(1, 40) a, generate_series(1, 50) f",
        "INSERT INTO shop.customers SELECT n, 'Customer ' || n, n % 7 > 0, date '2020-01-01' + n % 2000,"
        " decode(md5(n::text), 'hex') FROM generate_series(1, 500) n",
        "CREATE VIEW shop.late AS SELECT * FROM shop.rentals WHERE back IS NULL",
    ),
    script=r"""
\set film random(1, 1000)
\set customer random(1, 500)
\set actor random(1, 60)
\set what random(1, 100)
\set day random(0, 700)
BEGIN;
INSERT INTO shop.rentals SELECT nextval('shop.rental_numbers'), film_id, :customer, localtimestamp, NULL
  FROM shop.films WHERE film_id = :film;
INSERT INTO shop.payments SELECT currval('shop.rental_numbers'), date '2025-01-01' + :day::int,
  currval('shop.rental_numbers'), rate FROM shop.films WHERE film_id = :film;
UPDATE shop.rentals SET back = localtimestamp WHERE customer_id = :customer AND back IS NULL AND film_id <> :film;
\if :what <= 20
UPDATE shop.films SET rate = rate + 0.01, features = features || ARRAY['x' || :what], rating = 'R'
  WHERE film_id = :film;
\endif
\if :what <= 10
UPDATE shop.customers SET active = NOT active, photo = decode(repeat(md5(random()::text), 100), 'hex')
  WHERE customer_id = :customer;
INSERT INTO shop.film_actors VALUES (:actor, :film) ON CONFLICT (actor_id, film_id) DO UPDATE SET changed = DEFAULT;
\endif
\if :what <= 3
DELETE FROM shop.film_actors WHERE actor_id = :actor;
DELETE FROM shop.films WHERE film_id = :film;
UPDATE shop.payments SET paid = paid + 365 WHERE payment_id % 97 = :what AND paid < '2026-01-01';
\endif
COMMIT;
""",
)

LOADS = {"pgbench": PGBENCH, "rentals": RENTALS}
