"""Events of files: of Datastream's own with all their quirks, and values there and back."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import EventUnreadable
from tidemark.model.foreign_json import parsed
from tidemark.replication.model.replication import Column, TableSchema, TypeKind, UnifiedType
from tidemark.replication.planning.event_file_schemas import avro_names, event_schema
from tidemark.replication.planning.event_files import FileEvent, event_of_avro, event_of_json, is_backfill
from tidemark.replication.planning.unified_values import JsonNumber, avro_value, json_token, text_of_avro, text_of_json

AT = "2019-11-07T02:15:39"


def told(read_method: str, payload: dict[str, Any], sort_keys: list[Any], at: str = AT, **metadata: Any) -> FileEvent:
    """A line as Datastream writes it."""
    line = {
        "stream_name": "projects/p/locations/l/streams/s",
        "read_method": read_method,
        "object": "shop_orders",
        "schema_key": "0" * 40,
        "uuid": "d7989206-380f-0e81-8056-240501101100",
        "read_timestamp": "2019-11-07T07:37:16.808Z",
        "source_timestamp": at,
        "sort_keys": sort_keys,
        "source_metadata": metadata,
        "payload": payload,
    }
    return event_of_json(json.dumps(line))


def of_mysql(change: str, file: str, place: int, at: str = AT, **payload: Any) -> FileEvent:
    more = {"database": "shop", "table": "orders", "primary_keys": ["id"], "change_type": change}
    deleted = change in ("DELETE", "UPDATE-DELETE")
    facts = {"log_file": file, "log_position": place, "is_deleted": deleted}
    method = "mysql-cdc-binlog" if file else "mysql-backfill-fulldump"
    return told(method, payload, [1573092939000, file, place], at, **more, **facts)


def place_of(event: FileEvent) -> tuple[str, int]:
    return event.position, event.sequence


def test_of_mysql_files_sort_by_number_and_a_backfill_is_before_all() -> None:
    in_order = [
        of_mysql("INSERT", "", 0, id=1),
        of_mysql("UPDATE-INSERT", "mysql-bin.999999", 5, id=1),
        of_mysql("UPDATE-INSERT", "mysql-bin.1000000", 4, id=1),
        of_mysql("DELETE", "mysql-bin.1000000", 100, id=1),
    ]
    assert sorted(in_order[::-1], key=place_of) == in_order
    assert [is_backfill(one) for one in in_order] == [True, False, False, False]
    assert [one.change for one in in_order] == ["INSERT", "UPDATE", "UPDATE", "DELETE"]
    assert in_order[1].source_metadata["schema"] == "shop"
    assert in_order[1].source_metadata["lsn"] == "mysql-bin.999999:5"
    assert in_order[1].object_id == "shop.orders"


def test_of_a_moved_key_the_old_row_goes_first_though_both_have_one_place() -> None:
    comes = of_mysql("UPDATE-INSERT", "mysql-bin.000001", 7, "2019-11-07T02:15:40", id=2)
    goes = of_mysql("UPDATE-DELETE", "mysql-bin.000001", 7, id=1)
    assert sorted([comes, goes], key=place_of) == [goes, comes]
    assert [(one.change, one.key) for one in (goes, comes)] == [("DELETE", '["1"]'), ("UPDATE", '["2"]')]


def test_of_oracle_scn_rs_id_and_ssn_are_the_order_and_row_id_is_the_key() -> None:
    def of_oracle(scn: int, rs_id: str, ssn: int) -> FileEvent:
        facts = {"scn": scn, "rs_id": rs_id, "ssn": ssn, "row_id": "AAAPwRAALAAMzMBABD", "log_file": ""}
        return told(
            "oracle-cdc-logminer",
            {"ID": "1231535353"},
            [1, scn, rs_id, ssn],
            database="DB1",
            schema="ROOT",
            table="SAMPLE",
            change_type="UPDATE-INSERT",
            **facts,
        )

    in_order = [
        of_oracle(9, "0x0073c9.000a4e4c.01d0", 0),
        of_oracle(15869116216871, "0x0073c9.000a4e4c.01d0", 0),
        of_oracle(15869116216871, "0x0073c9.000a4e4c.01d0", 67),
        of_oracle(15869116216871, "0x0073c9.000a4e4d.0010", 0),
    ]
    assert sorted(in_order[::-1], key=place_of) == in_order
    assert {(one.change, one.key) for one in in_order} == {("UPDATE", '["AAAPwRAALAAMzMBABD"]')}
    assert in_order[0].object_id == "DB1.ROOT.SAMPLE"


def test_of_postgresql_both_spellings_of_its_read_method_are_one_and_numbers_become_texts() -> None:
    def of_postgresql(method: str, lsn: str, at: str = AT) -> FileEvent:
        facts = {"schema": "public", "table": "t", "is_deleted": False, "primary_keys": ["id"], "tx_id": 4711}
        payload = {"id": 1, "price": 1.50, "name": "a", "flag": True, "gone": None, "doc": {"a": [1, None]}}
        return told(method, payload, [1, lsn], at, **facts, change_type="UPDATE", lsn=lsn)

    first, second = of_postgresql("postgresql-cdc", "F/CB002DB0"), of_postgresql("postgres-cdc-wal", "16/00000001")
    later = of_postgresql("postgresql-cdc", "1/1", "2019-11-07T02:15:40Z")
    assert sorted([later, second, first], key=place_of) == [first, second, later]
    assert first.read_method == second.read_method == "postgres-cdc-wal"
    assert json.loads(first.payload) == {
        "id": "1",
        "price": "1.5",
        "name": "a",
        "flag": "true",
        "gone": None,
        "doc": '{"a": [1, null]}',
    }
    assert (first.source_metadata["tx_id"], first.sort_keys) == ("4711", ("1", "F/CB002DB0"))
    assert first.source_timestamp == datetime(2019, 11, 7, 2, 15, 39, tzinfo=UTC)
    assert first.change == "UPDATE"


def test_of_sql_server_the_key_is_the_replication_index() -> None:
    event = told(
        "sqlserver-cdc",
        {"a": 1, "b": "x"},
        [1, "00000030:00000398:0002"],
        table="t",
        database="d",
        schema="dbo",
        is_deleted=True,
        lsn="00000030:00000398:0002",
        tx_id="1",
        physical_location=[1, 2, 3],
        replication_index=["b", "a"],
        change_type="DELETE",
    )
    assert (event.change, event.key) == ("DELETE", '["x","1"]')
    assert event.source_metadata["primary_keys"] == ["b", "a"]


def test_a_row_without_any_key_keeps_its_halves() -> None:
    facts = {"database": "d", "table": "t", "primary_keys": [], "log_file": "b.1", "log_position": 1}
    event = told("mysql-cdc-binlog", {"a": 1}, [1, "b.1", 1], change_type="UPDATE-INSERT", is_deleted=False, **facts)
    assert (event.change, event.key) == ("UPDATE-INSERT", None)


def test_of_avro_types_of_mysql_become_canonical_texts() -> None:
    payload = {
        "id": 1,
        "big": "18446744073709551615",
        "price": Decimal("1.50"),
        "at": datetime(2024, 2, 29, 12, 0, 0, 500000, tzinfo=UTC),
        "blob": "00ff",
        "raw": b"\x00\xff",
        "day": date(2024, 2, 29),
        "clock": time(23, 59, 59, 1),
        "zoned": {"timestamp": datetime(2024, 2, 29, 12, tzinfo=UTC), "offset": 3_600_000},
        "local": {"date": date(2024, 2, 29), "time": time(12)},
        "half": 0.5,
        "none": None,
    }
    record = {
        "stream_name": "s",
        "read_method": "mysql-cdc-binlog",
        "object": "shop_orders",
        "schema_key": "k",
        "uuid": "u",
        "read_timestamp": datetime(2024, 2, 29, tzinfo=UTC),
        "source_timestamp": 1573092939000,
        "sort_keys": [1573092939000, "b.000001", 4],
        "source_metadata": {"log_file": "b.000001", "log_position": 4, "database": "shop", "table": "orders",
                            "primary_keys": ["id"], "is_deleted": False, "change_type": "INSERT"},
        "payload": payload,
    }  # fmt: skip
    event = event_of_avro(record)
    assert json.loads(event.payload) == {
        "id": "1",
        "big": "18446744073709551615",
        "price": "1.50",
        "at": "2024-02-29 12:00:00.5+00",
        "blob": "00ff",
        "raw": "00ff",
        "day": "2024-02-29",
        "clock": "23:59:59.000001",
        "zoned": "2024-02-29 12:00:00+00",
        "local": "2024-02-29 12:00:00",
        "half": "0.5",
        "none": None,
    }
    assert event.source_timestamp == datetime(2019, 11, 7, 2, 15, 39, tzinfo=UTC)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "{",
        '{"payload": {}}',
        "[" * 100_000,
        json.dumps({"source_metadata": None}),
        json.dumps({"source_metadata": {}, "payload": []}),
    ],
)
def test_what_is_no_event_is_named(line: str) -> None:
    with pytest.raises(EventUnreadable):
        event_of_json(line)


VALUES = [
    (UnifiedType(TypeKind.BOOLEAN), ["true", "false"]),
    (UnifiedType(TypeKind.SMALLINT), ["-32768", "0"]),
    (UnifiedType(TypeKind.LONG), ["9223372036854775807", "-1"]),
    (UnifiedType(TypeKind.FLOAT), ["0.1", "16777216", "1e+20", "NaN", "-Infinity", "1.2345679e+08"]),
    (UnifiedType(TypeKind.DOUBLE), ["0.1", "1e-300", "NaN", "Infinity", "123456.789"]),
    (UnifiedType(TypeKind.DECIMAL, 10, 2), ["1.50", "-12345678.90", "0.00"]),
    (UnifiedType(TypeKind.DECIMAL, 3, -2), ["12300"]),
    (UnifiedType(TypeKind.DECIMAL), ["123456789012345678901234567890.5", "NaN"]),
    (UnifiedType(TypeKind.STRING), ["", "ü😀", "2024-02-29T12:00:00Z", 'a"b\n']),
    (UnifiedType(TypeKind.BYTES), ["", "00ff"]),
    (UnifiedType(TypeKind.DATE), ["2024-02-29", "0001-01-01"]),
    (UnifiedType(TypeKind.DATETIME), ["2024-02-29 12:00:00", "2024-02-29 12:00:00.1", "0001-01-01 00:00:00"]),
    (UnifiedType(TypeKind.TIMESTAMP), ["2024-02-29 12:00:00.123456+00", "9999-12-31 23:59:59.999999+00"]),
    (UnifiedType(TypeKind.JSON), ['{"a": 1.50}', "null", '"text"', "5", "[1, {}]"]),
    (UnifiedType(TypeKind.ARRAY, item=UnifiedType(TypeKind.INTEGER)), ['["1",null]', '[["1"],["2"]]']),
]
EACH = [(kind, text) for kind, texts in VALUES for text in texts]


@pytest.mark.parametrize(("kind", "text"), EACH)
def test_a_value_comes_back_from_json_as_it_was(kind: UnifiedType, text: str) -> None:
    token = json_token(kind)(text)
    json.loads(token)
    assert text_of_json(parsed(token, number=JsonNumber), kind) == text


@pytest.mark.parametrize(("kind", "text"), EACH)
def test_a_value_comes_back_from_avro_as_it_was(kind: UnifiedType, text: str) -> None:
    import io

    import fastavro

    schema = fastavro.parse_schema(event_schema(TableSchema((Column("c", kind, "x"),))))
    payload = next(field["type"] for field in schema["fields"] if field["name"] == "payload")
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, payload, {"c": avro_value(kind)(text)})
    sink.seek(0)
    found = fastavro.schemaless_reader(sink, payload, None)["c"]
    assert text_of_avro(found, single=kind.kind is TypeKind.FLOAT) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (UnifiedType(TypeKind.DATE), "infinity"),
        (UnifiedType(TypeKind.DATE), "0044-03-15 BC"),
        (UnifiedType(TypeKind.DATETIME), "-infinity"),
        (UnifiedType(TypeKind.TIMESTAMP), "10000-01-01 00:00:00+00"),
        (UnifiedType(TypeKind.DECIMAL, 10, 2), "NaN"),
        (UnifiedType(TypeKind.DECIMAL, 10, 2), "123456789.00"),
        (UnifiedType(TypeKind.DECIMAL, 10, 2), "1.001"),
        (UnifiedType(TypeKind.INTEGER), "2147483648"),
        (UnifiedType(TypeKind.BOOLEAN), "t"),
        (UnifiedType(TypeKind.BYTES), "xx"),
    ],
)
def test_avro_has_no_value_for_what_its_type_cannot_hold(kind: UnifiedType, text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of whichever conversion
        avro_value(kind)(text)
    assert text_of_json(parsed(json_token(kind)(text), number=JsonNumber), kind) == text


@given(st.floats(width=32))
def test_a_float_of_32_bits_has_the_shortest_digits_that_give_it_back(value: float) -> None:
    import struct

    text = str(text_of_avro(value, single=True))
    assert struct.pack("f", float(text)) == struct.pack("f", value) or value != value
    assert len(text) <= 15


@given(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=8, unique=True))
def test_fields_of_avro_have_names_of_their_own(names: list[str]) -> None:
    found = avro_names(TableSchema(tuple(Column(name, UnifiedType(TypeKind.STRING), "text") for name in names)))
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(name.isascii() and name.isidentifier() for name in found.values())


@given(st.datetimes())
def test_moments_of_both_kinds_come_back(at: datetime) -> None:
    for kind, zone in ((TypeKind.DATETIME, ""), (TypeKind.TIMESTAMP, "+00")):
        text = at.isoformat(" ")
        text = (text.rstrip("0") if "." in text else text) + zone
        assert text_of_avro(avro_value(UnifiedType(kind))(text)) == text
