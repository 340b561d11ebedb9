"""A value has the same text in an event and in a query, whatever its type is; and a type the same words."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

import pytest

from tests.databases.mysql.captured import BinlogWorld
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import TypeKind, UnifiedType
from tidemark.replication.planning.hiding import hasher
from tidemark.replication.sources.mysql.catalog import columns_of
from tidemark.replication.sources.mysql.charsets import decoder_of
from tidemark.replication.sources.mysql.connection import connect, rows_of
from tidemark.replication.sources.mysql.dialects import dialect_of
from tidemark.replication.sources.mysql.json_binary import double_text
from tidemark.replication.sources.mysql.texts import text_expression

K = TypeKind
LOOSE = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'"


@dataclass(frozen=True)
class Case:
    """Values of a type, as SQL; `only`: the one database that has the type."""

    type: str
    values: tuple[str, ...]
    unified: UnifiedType
    only: SourceKind | None = None


def _case(kind: str, unified: TypeKind, *values: str, only: SourceKind | None = None) -> Case:
    return Case(kind, values, UnifiedType(unified), only)


WIDEST = UnifiedType(K.DECIMAL, 20, 0)
CASES = (
    _case("TINYINT", K.SMALLINT, "-128", "127", "0"),
    _case("TINYINT(1)", K.SMALLINT, "0", "1", "2"),
    _case("TINYINT UNSIGNED", K.SMALLINT, "255", "128"),
    _case("SMALLINT", K.SMALLINT, "-32768", "32767"),
    _case("SMALLINT UNSIGNED", K.INTEGER, "65535"),
    _case("MEDIUMINT", K.INTEGER, "-8388608", "8388607"),
    _case("MEDIUMINT UNSIGNED", K.INTEGER, "16777215"),
    _case("INT", K.INTEGER, "-2147483648", "2147483647"),
    _case("INT UNSIGNED", K.LONG, "4294967295"),
    _case("BIGINT", K.LONG, "-9223372036854775808", "9223372036854775807"),
    Case("BIGINT UNSIGNED", ("18446744073709551615", "0"), WIDEST),
    Case("DECIMAL(10,3)", ("-1.5", "9999999.999", "0", "0.001", "-0.001"), UnifiedType(K.DECIMAL, 10, 3)),
    Case("DECIMAL(38,0)", ("-99999999999999999999999999999999999999", "7"), UnifiedType(K.DECIMAL, 38, 0)),
    Case("DECIMAL(20,20)", ("0.00000000000000000001", "-0.5"), UnifiedType(K.DECIMAL, 20, 20)),
    Case("DECIMAL(9,2) UNSIGNED", ("1.20", "0"), UnifiedType(K.DECIMAL, 9, 2)),
    _case("DECIMAL(65,30)", K.STRING, "-12345678901234567890123456789012345.123456789012345678901234567890"),
    _case("FLOAT", K.FLOAT, "1.1", "-0.5", "16777216", "123456.7", "3"),
    _case("DOUBLE", K.DOUBLE, "1.1", "-0.1", "1234567890123", "0.0001", "3"),
    _case("BIT(1)", K.LONG, "b'1'", "b'0'"),
    _case("BIT(10)", K.LONG, "b'1000000001'"),
    Case("BIT(64)", ("0xFFFFFFFFFFFFFFFF", "5"), WIDEST),
    _case("YEAR", K.INTEGER, "1901", "2155", "0"),
    _case("DATE", K.DATE, "'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-00-00'"),
    _case("DATETIME", K.DATETIME, "'2024-02-29 23:59:59'", "'0000-00-00 00:00:00'", "'1000-01-01 00:00:00'"),
    _case("DATETIME(1)", K.DATETIME, "'2024-02-29 23:59:59.9'"),
    _case("DATETIME(3)", K.DATETIME, "'2024-02-29 23:59:59.007'", "'2024-02-29 23:59:59'"),
    _case("DATETIME(6)", K.DATETIME, "'2024-02-29 23:59:59.000001'", "'9999-12-31 23:59:59.999999'"),
    _case("TIMESTAMP NULL", K.TIMESTAMP, "'2024-07-01 12:00:00'", "'1970-01-01 06:00:01'", "'0000-00-00 00:00:00'"),
    _case("TIMESTAMP(5) NULL", K.TIMESTAMP, "'2024-07-01 12:00:00.12345'", "'2038-01-19 03:14:07'"),
    _case("TIME", K.STRING, "'838:59:59'", "'-838:59:59'", "'00:00:00'", "'-00:00:01'", "'12:30'"),
    _case("TIME(2)", K.STRING, "'-12:00:00.01'", "'12:00:00.5'", "'-00:00:00.99'"),
    _case("TIME(3)", K.STRING, "'-12:00:00.001'", "'12:00:00.5'"),
    _case("TIME(6)", K.STRING, "'-12:00:00.000001'", "'100:00:00.999999'", "'-00:00:00.5'"),
    _case("CHAR(5)", K.STRING, "'a'", "'ä  '", "''", "'five5'"),
    _case("CHAR(100)", K.STRING, "'a😀'", "REPEAT('ß', 100)"),
    _case("VARCHAR(20)", K.STRING, "'a '", "'it''s'", "''", "'\"\\\\\\n'"),
    _case("VARCHAR(500)", K.STRING, "REPEAT('é', 500)"),
    _case("VARCHAR(20) CHARACTER SET latin1", K.STRING, "'é€ÿ'", "_latin1 x'8190'"),
    _case("VARCHAR(20) CHARACTER SET utf16", K.STRING, "'é😀'"),
    _case("VARCHAR(20) CHARACTER SET ucs2", K.STRING, "'é'"),
    _case("VARCHAR(20) CHARACTER SET sjis", K.STRING, "'日本'"),
    _case("VARCHAR(20) CHARACTER SET gbk", K.STRING, "'中文'"),
    _case("VARCHAR(20) CHARACTER SET cp1251 COLLATE cp1251_bin", K.STRING, "'Жук'"),
    _case("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", K.STRING, "'Ж'"),
    _case("TINYTEXT", K.STRING, "'a'"),
    _case("TEXT", K.STRING, "REPEAT('ab', 20000)", "''"),
    _case("MEDIUMTEXT CHARACTER SET latin1", K.STRING, "'é'"),
    _case("LONGTEXT", K.STRING, "'é'"),
    _case("BINARY(4)", K.BYTES, "x'00010000'", "x'00000000'", "x'FF'", "''"),
    _case("BINARY(255)", K.BYTES, "x'AB'"),
    _case("VARBINARY(300)", K.BYTES, "x'00FF00'", "''"),
    _case("TINYBLOB", K.BYTES, "x'00FF'"),
    _case("BLOB", K.BYTES, "x'00FF'", "REPEAT(x'00', 70)"),
    _case("MEDIUMBLOB", K.BYTES, "x'00FF'"),
    _case("LONGBLOB", K.BYTES, "x'00FF'"),
    _case("ENUM('x','y''z','ä,b')", K.STRING, "'x'", "'y''z'", "'ä,b'", "3"),
    _case("ENUM('é','b') CHARACTER SET latin1", K.STRING, "'é'"),
    _case("SET('a','b','ç')", K.STRING, "'a,b'", "''", "'ç,a'", "7"),
    _case("SET('é','b') CHARACTER SET latin1", K.STRING, "'é,b'"),
    _case("POINT", K.BYTES, "ST_GeomFromText('POINT(1 -2.5)')"),
    _case(
        "GEOMETRY",
        K.BYTES,
        "ST_GeomFromText('LINESTRING(0 0,1 1)')",
        "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')",
    ),
    _case(
        "JSON",
        K.JSON,
        *(
            f"'{one}'"
            for one in (
                '{"a": 1, "bb": [true, null, "x\\\\"é😀\\\\n"], "c": {}}',
                "[1.5, -7, 65535, 4294967295, 18446744073709551615]",
                '"text"',
                "null",
                "[]",
                "3.0",
                "[1e100, -0.25]",
                "[-40000, -3000000000, 70000]",
            )
        ),
        only=SourceKind.MYSQL,
    ),
    _case("JSON", K.STRING, '\'{"a":1, "b": [ ]}\'', only=SourceKind.MARIADB),
    _case(
        "UUID",
        K.STRING,
        "'123e4567-e89b-12d3-a456-426655440000'",
        "'018f4e1c-7b2a-7000-8000-0123456789ab'",
        "'f47ac10b-58cc-4372-a567-0e02b2c3d479'",
        "'00000000-0000-0000-0000-000000000000'",
        only=SourceKind.MARIADB,
    ),
    _case(
        "INET6",
        K.STRING,
        "'2001:db8::ff00:42:8329'",
        "'::'",
        "'::1'",
        "'::ffff:192.0.2.1'",
        "'1::'",
        only=SourceKind.MARIADB,
    ),
    _case("INET4", K.STRING, "'192.0.2.1'", "'0.0.0.0'", only=SourceKind.MARIADB),
)


def test_events_and_queries_have_the_same_texts_and_types(world: BinlogWorld) -> None:
    """All types are columns of one table, so that metadata of one is not taken for that of another."""
    cases = [case for case in CASES if case.only in (None, world.server.kind)]
    columns = ", ".join(f"c{place} {case.type}" for place, case in enumerate(cases))
    world.sql(f"CREATE TABLE t (id INT PRIMARY KEY, {columns}) ROW_FORMAT=DYNAMIC")
    world.replicate("t")
    for number in range(max(len(case.values) for case in cases)):
        values = [case.values[number] if number < len(case.values) else "NULL" for case in cases]
        _loosely(world, f"INSERT INTO t VALUES ({number}, {', '.join(values)})")

    events = world.batch()
    assert [str(event["change"]) for event in events] == ["SCHEMA"] + ["INSERT"] * (len(events) - 1)
    with connect(world.address) as connection:
        schema = columns_of(connection, f"{world.database}.t")
        dialect = dialect_of(str(connection.get_server_info()))
        texts = ", ".join(text_expression(one.name, one.native, dialect) for one in schema.columns)
        selected = rows_of(connection, f"SELECT {texts} FROM {world.database}.t ORDER BY id")
    logged = world.schemas[f"{world.database}.t"]
    assert [one.native for one in logged.columns] == [one.native for one in schema.columns]
    assert [one.type for one in logged.columns] == [UnifiedType(K.INTEGER), *(case.unified for case in cases)]
    names = [column.name for column in schema.columns]
    for event, row in zip(events[1:], selected, strict=True):
        payload = json.loads(event["payload"])
        for name, text, case in zip(names, row, [Case("INT", (), UnifiedType(K.INTEGER)), *cases], strict=True):
            assert _same(payload[name], text, case), f"{case.type}: {payload[name]!r} is not {text!r}"


def _loosely(world: BinlogWorld, statement: str) -> None:
    connection = world.server.connection(world.database)
    with connection.cursor() as cursor:
        cursor.execute(LOOSE)
        cursor.execute("SET SESSION time_zone = '+05:00'")
        cursor.execute(statement)
    connection.commit()
    connection.close()


def _same(event: str | None, selected: str | None, case: Case) -> bool:
    """A FLOAT comes as the DOUBLE of the same value."""
    if case.unified.kind is K.FLOAT and event is not None and selected is not None:
        import struct

        return struct.pack("<f", float(event)) == struct.pack("<f", float(selected))
    return event == selected


@pytest.mark.parametrize("charset", ["cp866", "eucjpms", "gb18030", "greek", "hebrew", "koi8u", "sjis", "ujis"])
def test_bytes_of_a_text_are_the_characters_that_the_server_makes_of_them(world: BinlogWorld, charset: str) -> None:
    """Else a key would have one text in a copy, and another in an event."""
    if not world.sql(f"SELECT 1 FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME = '{charset}'"):
        pytest.skip(f"the server has no {charset}")
    codes = ["7e", "fc", "fd", "a1", "a2", "af", "95", "815f", "a1c0", "a1c1", "a1dd", "a1f1", "a2cc", "a8bc", "8fa2c3"]
    codes += ["8135f437"]  # of gb18030
    texts = ", ".join(
        f"HEX(CONVERT(x'{code}' USING {charset})), CONVERT(CONVERT(x'{code}' USING {charset}) USING utf8mb4)"
        for code in codes
    )
    (row,) = world.sql(f"SELECT {texts}")
    read = decoder_of(charset)
    known = {
        one: text for one, code, text in zip(codes, row[::2], row[1::2], strict=True) if code == one.upper() and text
    }
    told = {code: text for code, text in known.items() if "?" not in text}
    assert told
    assert {code: read(bytes.fromhex(code)) for code in told} == told


def test_doubles_have_the_digits_that_the_server_gives_them(world: BinlogWorld) -> None:
    chance = random.Random(4)
    values = [10.0**power for power in range(-40, 40)] + [
        -2.5e-15,
        123456789012345680.0,
        3875238299756962.5,
        5e-324,
        1.7976931348623157e308,
    ]
    values += [chance.uniform(-1, 1) * 10.0 ** chance.randint(-30, 30) for _ in range(500)]
    world.sql("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a DOUBLE)")
    world.sql(f"INSERT INTO t (a) VALUES {', '.join(f'({value!r})' for value in values)}")
    with connect(world.address) as connection:
        found = rows_of(connection, f"SELECT CAST(a AS CHAR) FROM {world.database}.t ORDER BY id")
        widest = dialect_of(str(connection.get_server_info())).widest_number
    assert [double_text(value, widest) for value in values] == [text for (text,) in found]


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_a_number_has_one_hash_in_events_and_in_copies(world: BinlogWorld, kind: str) -> None:
    world.hash_secret = "s"
    world.sql(f"CREATE TABLE t (id INT PRIMARY KEY, a {kind})")
    world.replicate("t", rules=ColumnRules(hash=("*.t.a",)))
    world.sql("INSERT INTO t VALUES (1, 0.1), (2, 1e15), (3, 16777216), (4, -1e-12)")
    with connect(world.address) as connection:
        dialect = dialect_of(str(connection.get_server_info()))
        text = text_expression("a", kind.lower(), dialect)
        copied = [
            hasher("s")(one) for (one,) in rows_of(connection, f"SELECT {text} FROM {world.database}.t ORDER BY id")
        ]
    assert [json.loads(event["payload"])["a"] for event in world.events()] == copied


@pytest.mark.parametrize("table", ["a.b", "it`s", "ü x"])
def test_names_may_have_any_characters(world: BinlogWorld, table: str) -> None:
    from tidemark.replication.model.replication import ObjectName
    from tidemark.replication.sources.mysql.names import name_of_id, qualified, source_id_of

    name = ObjectName(world.database, table)
    assert name_of_id(source_id_of(name)) == name
    world.sql(f"CREATE TABLE {qualified(name)} (`a b` INT PRIMARY KEY, `c``d` INT)")
    with connect(world.address) as connection:
        assert [one.name for one in columns_of(connection, source_id_of(name)).columns] == ["a b", "c`d"]
