"""Every type that people use has its canonical text in an event."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.databases.postgresql.captured import SourceWorld
from tests.postgresql import PostgresServer
from tidemark.replication.model.replication import TypeKind, UnifiedType
from tidemark.replication.sources.postgresql.texts import array_text, canonical

VALUES = {  # type → (SQL literal, text)
    "bool": ("'t'", "true"),
    "smallint": ("-32768", "-32768"),
    "int": ("2147483647", "2147483647"),
    "bigint": ("-9223372036854775808", "-9223372036854775808"),
    "real": ("0.1", "0.1"),
    "float8": ("1e300", "1e+300"),
    "double precision": ("'NaN'", "NaN"),
    "numeric": ("'NaN'", "NaN"),
    "numeric(10,2)": ("12345678.9", "12345678.90"),
    "numeric(38,0)": ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
    "text": ("E'a\\tb\\\\ \"q\" 漢 🌊'", 'a\tb\\ "q" 漢 🌊'),
    "varchar(5)": ("'  x '", "  x "),
    "char(4)": ("'x'", "x   "),
    "bytea": ("'\\x00ff41'", "00ff41"),
    "date": ("'0044-03-15 BC'", "0044-03-15 BC"),
    "timestamp": ("'2024-02-29 12:00:00.123456'", "2024-02-29 12:00:00.123456"),
    "timestamptz": ("'2024-02-29 12:00:00.5+02'", "2024-02-29 10:00:00.5+00"),
    "timestamp(0)": ("'infinity'", "infinity"),
    "timestamptz(3)": ("'-infinity'", "-infinity"),
    "time": ("'12:00:00.5'", "12:00:00.5"),
    "timetz": ("'12:00+02'", "12:00:00+02"),
    "interval": ("'1 year 2 mons 3 days 04:05:06'", "1 year 2 mons 3 days 04:05:06"),
    "json": ("'{\"a\" : \"\\u00e9 漢\"}'", '{"a" : "\\u00e9 漢"}'),
    "jsonb": ("'{\"b\":1,\"a\":[null,\"é\"]}'", '{"a": [null, "é"], "b": 1}'),
    "uuid": ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "inet": ("'10.0.0.1/8'", "10.0.0.1/8"),
    "bit(4)": ("B'1010'", "1010"),
    "bit varying": ("B'101'", "101"),
    "int4range": ("'[1,5)'", "[1,5)"),
    "money": ("'1234.5'", "$1,234.50"),
    "point": ("'(1,2)'", "(1,2)"),
    "xml": ("'<a>&amp;</a>'", "<a>&amp;</a>"),
    "mood": ("'so so'", "so so"),
    "positive": ("7", "7"),
    "flag": ("'t'", "true"),
    "pair": ("ROW(1, 'a \"b\", c')", '(1,"a ""b"", c")'),
    "int[]": ("'{1,NULL,3}'", '["1",null,"3"]'),
    "bool[]": ("'{t,f}'", '["true","false"]'),
    "bytea[]": ("ARRAY['\\xff'::bytea]", '["ff"]'),
    "text[]": ("ARRAY['a,b', 'c\"d', 'e\\f', '', 'NULL', NULL, '{x}', ' s ']",
               json.dumps(["a,b", 'c"d', "e\\f", "", "NULL", None, "{x}", " s "], separators=(",", ":"))),
    "int4[]": ("'{}'", "[]"),
    "int2[]": ("'{{1,2},{3,NULL}}'", '[["1","2"],["3",null]]'),
    "int8[]": ("'[0:1]={5,6}'", '["5","6"]'),
    "timestamptz[]": ("ARRAY['2024-01-01 00:00+01'::timestamptz]", '["2023-12-31 23:00:00+00"]'),
    "box[]": ("'{(1,1),(0,0);(3,3),(2,2)}'", '["(1,1),(0,0)","(3,3),(2,2)"]'),
    "mood[]": ("'{so so,fine}'", '["so so","fine"]'),
    "flag[]": ("'{t,NULL}'", '["true",null]'),
    "pair[]": ("ARRAY[ROW(1,'x')::pair]", '["(1,x)"]'),
}  # fmt: skip


@pytest.fixture(scope="module")
def payload(source_server: PostgresServer) -> Iterator[dict[str, str | None]]:
    """By type, of one row with a value of each; it has passed through the source's log."""
    world = SourceWorld(source_server, "texts")
    world.sql(
        "CREATE TYPE mood AS ENUM ('so so', 'fine')",
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        "CREATE DOMAIN flag AS bool",
        "CREATE TYPE pair AS (a int, b text)",
    )
    columns = ", ".join(f'"{kind}" {kind}' for kind in VALUES)
    world.sql(f"CREATE TABLE t (id int PRIMARY KEY, {columns})")
    world.replicate("t")
    listed = ", ".join(value for value, _ in VALUES.values())
    world.sql("SET lc_monetary = 'C'", f"INSERT INTO t VALUES (1, {listed})", "INSERT INTO t VALUES (2)")
    full, empty = world.events()
    assert set(json.loads(empty["payload"]).values()) == {"2", None}
    yield json.loads(full["payload"])
    world.close()


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_has_its_canonical_text(payload: dict[str, str | None], kind: str) -> None:
    assert payload[kind] == VALUES[kind][1]


def test_an_array_of_arrays_keeps_its_form() -> None:
    assert json.loads(array_text()('{{{a,"b c"}},{{NULL,"}"}}}')) == [[["a", "b c"]], [[None, "}"]]]


def test_what_needs_no_conversion_has_no_function() -> None:
    assert canonical(UnifiedType(TypeKind.LONG)) is None
    assert canonical(UnifiedType(TypeKind.STRING)) is None
