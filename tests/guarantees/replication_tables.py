"""The tables that random writers write to: each has something that replication can get wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.guarantees.replication_values import any_value

__all__ = ["SCHEMA", "SETUP", "SourceTable", "quoted", "source_tables"]

SCHEMA = "shop"
SETUP = (
    "CREATE SCHEMA shop",
    "CREATE TYPE shop.mood AS ENUM ('sad', 'very happy')",
    "CREATE TYPE shop.pair AS (n integer, t text)",
    "CREATE DOMAIN shop.amount AS numeric(12,2) CHECK (VALUE > -1e11)",
    "CREATE SEQUENCE shop.history_order",
    "CREATE TABLE shop.history (number bigint DEFAULT nextval('shop.history_order'), tx bigint DEFAULT txid_current(),"
    " change text, old jsonb, new jsonb)",
    "CREATE FUNCTION shop.keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " INSERT INTO shop.history (change, old, new)"
    " VALUES (TG_OP, CASE WHEN TG_OP IN ('UPDATE', 'DELETE') THEN to_jsonb(OLD) END,"
    " CASE WHEN TG_OP IN ('UPDATE', 'INSERT') THEN to_jsonb(NEW) END); RETURN NULL; END $$",
)


def quoted(name: str) -> str:
    """An identifier in SQL with parameters."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


Key = Callable[[random.Random], tuple[str, ...]]


@dataclass
class SourceTable:
    """A table as it is now. `columns`: name → type. `key`: columns of its identity, () without; `keys` draws one of a
    few, so that keys meet again. `more`: statements behind CREATE TABLE, `{t}` being its name.
    """

    name: str
    columns: dict[str, str]
    key: tuple[str, ...]
    keys: Key
    alterable: bool = True
    constraint: str | None = None  # instead of PRIMARY KEY (key)
    suffix: str = ""
    more: tuple[str, ...] = ()
    added: int = 0

    @property
    def sql(self) -> str:
        return f"{SCHEMA}.{quoted(self.name)}"

    @property
    def values(self) -> tuple[str, ...]:
        """Columns outside the key."""
        return tuple(name for name in self.columns if name not in self.key)

    def create(self) -> list[str]:
        """Statements without parameters."""
        required = " NOT NULL"
        columns = [f"{quoted(name)} {kind}{required * (name in self.key)}" for name, kind in self.columns.items()]
        constraint = self.constraint
        if constraint is None and self.key:
            constraint = f"PRIMARY KEY ({', '.join(map(quoted, self.key))})"
        body = ", ".join([*columns, *([constraint] if constraint else [])])
        made = f"CREATE TABLE {self.sql} ({body}) {self.suffix}".replace("%%", "%")
        return [made, *(text.format(t=self.sql) for text in self.more)]

    def row(self, chance: random.Random) -> dict[str, str | None]:
        """A whole row, its key one of the few."""
        made = dict(zip(self.key, self.keys(chance), strict=True))
        return {
            name: made[name] if name in made else any_value(native, chance) for name, native in self.columns.items()
        }


_KINDS = {
    f"c{number} {native}": native
    for number, native in enumerate(
        """smallint|integer|bigint|real|double precision|numeric(12,2)|numeric(38,10)|numeric(50,5)|numeric|boolean
        |char(5)|varchar(40)|text|bytea|date|timestamp|timestamptz|time|timetz|interval|uuid|json|jsonb|inet|macaddr
        |int4range|point|bit(4)|varbit|tsvector|shop.amount|shop.mood|shop.pair|integer[]|text[]|boolean[]|numeric(10,2)[]
        |double precision[]|date[]|timestamptz[]|uuid[]""".replace("\n", "")
        .replace(" " * 8, "")
        .split("|")
    )
}


def _numbers(until: int, columns: int = 1) -> Key:
    return lambda chance: tuple(str(chance.randrange(until)) for _ in range(columns))


def source_tables() -> tuple[SourceTable, ...]:
    """Fresh descriptions, for a database of one's own."""
    return (
        SourceTable(
            "orders",
            {"id": "bigint", "note": "text", "amount": "numeric(12,2)", "at": "timestamptz", "flag": "boolean"},
            ("id",),
            _numbers(50),
            more=("ALTER TABLE {t} ALTER COLUMN note SET STORAGE EXTERNAL",),
        ),
        SourceTable(
            "lines",
            {"order_id": "integer", "qty": "smallint", "line": "smallint", "what": "varchar(40)", "photo": "bytea"},
            ("line", "order_id"),
            _numbers(8, 2),
        ),
        SourceTable(
            "Odd.Names",
            {"the key": "text", "a.b": "integer", "tick`s": "text", "Größe": "double precision", "100 %": "date"},
            ("the key",),
            lambda chance: (chance.choice(("", "a", "A", "ä", "a ", "x.y", "\t", "'", '"', "NULL", "\\", "😀")),),
            alterable=False,
        ),
        SourceTable(
            "kinds", {"id": "uuid", **_KINDS}, ("id",), lambda c: (f"00000000-0000-4000-8000-{c.randrange(20):012}",),
            alterable=False,
        ),
        SourceTable(
            "whole", {"id": "integer", "story": "text", "n": "integer"}, ("id",), _numbers(20),
            more=("ALTER TABLE {t} REPLICA IDENTITY FULL",),
        ),
        SourceTable(
            "readings",
            {"at": "timestamptz", "value": "real", "sensor": "numeric(12,2)", "raw": "text"},
            ("sensor", "at"),
            lambda c: (f"{c.randrange(4)}.50", f"2024-01-0{c.randrange(1, 4)} 00:00:00.5+00"),
        ),
        SourceTable(
            "by_index", {"code": "varchar(40)", "body": "text", "n": "integer"}, ("code",),
            lambda c: (f"code {c.randrange(15)}",),
            constraint="CONSTRAINT by_index_code UNIQUE (code)",
            more=("ALTER TABLE {t} REPLICA IDENTITY USING INDEX by_index_code",),
        ),
        SourceTable(
            "visits", {"who": "integer", "page": "text", "n": "bigint"}, (), lambda c: (), alterable=False,
            more=(
                "ALTER TABLE {t} REPLICA IDENTITY FULL",
                "CREATE TRIGGER keep AFTER INSERT OR UPDATE OR DELETE ON {t} FOR EACH ROW EXECUTE FUNCTION shop.keep()",
                "CREATE TRIGGER keep_truncate AFTER TRUNCATE ON {t} FOR EACH STATEMENT EXECUTE FUNCTION shop.keep()",
            ),
        ),
        SourceTable(
            "days", {"day": "date", "n": "integer", "story": "text"}, ("day",),
            lambda c: (f"2024-0{c.randrange(1, 4)}-0{c.randrange(1, 8)}",), alterable=False,
            suffix="PARTITION BY RANGE (day)",
            more=tuple(
                f"CREATE TABLE shop.d{n} PARTITION OF {{t}} FOR VALUES FROM ('2024-0{n}-01') TO ('2024-0{n + 1}-01')"
                for n in (1, 2, 3)
            ),
        ),
    )  # fmt: skip
