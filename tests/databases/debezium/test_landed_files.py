"""Files of envelopes: their forms, their lanes and their order."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.databases.debezium.landed import address_of, land, read_events, reader_of, tables
from tidemark.errors import EnvelopeInvalid, EnvelopesOutOfOrder, SourceRefused
from tidemark.replication.model.replication import Selection
from tidemark.replication.planning.debezium_marks import Mark, mark_of
from tidemark.replication.sources.debezium.inputs import EnvelopeInput
from tidemark.replication.sources.debezium.lanes import lane_of
from tidemark.replication.sources.debezium.opening import open_input
from tidemark.replication.sources.debezium.settings import settings_of

SOURCE = {"connector": "postgresql", "name": "s", "db": "d", "schema": "public", "table": "t", "lsn": 5, "ts_ms": 7}


def envelope(op: str, key: Any, after: dict[str, Any] | None, **source: Any) -> dict[str, Any]:
    value = {"op": op, "source": {**SOURCE, **source}, "before": None, "after": after}
    return {"key": None if key is None else {"id": key}, "value": value}


def keys(directory: Path, **parameters: Any) -> list[str]:
    return [one["key"] for one in read_events(address_of(directory, **parameters)) if one["change"] != "SCHEMA"]


def landed_at(directory: Path) -> EnvelopeInput:
    return open_input(settings_of(address_of(directory)))


@pytest.mark.parametrize(
    ("name", "lane"),
    [
        ("a.json", ""),
        ("2024/01/02/a.json", ""),
        ("year=2024/month=01/a.json", ""),
        ("shop.public.orders/a.json", "shop.public.orders"),
        ("shop.public.orders/2024/a.json", "shop.public.orders"),
        ("topics/orders/partition=3/a.json", "topics/orders/partition=3"),
        ("topics/orders/dt=2024-01-01/partition=3/a.json", "topics/orders/partition=3"),
    ],
)
def test_directories_are_lanes_unless_they_stand_for_a_time(name: str, lane: str) -> None:
    assert lane_of(name) == lane


def test_lines_may_be_compressed_and_other_files_are_not_looked_at(tmp_path: Path) -> None:
    land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1})])
    lines = "".join(json.dumps(envelope("c", key, {"id": key})) + "\n" for key in (2, 3))
    (tmp_path / "2.json.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "3.txt").write_text("no envelope")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".4.json").write_text("half")
    assert keys(tmp_path) == ['["1"]', '["2"]', '["3"]']


def test_a_batch_may_end_within_a_compressed_file(tmp_path: Path) -> None:
    lines = "".join(json.dumps(envelope("c", key, {"id": key})) + "\n" for key in range(1, 6))
    (tmp_path / "1.json.gz").write_bytes(gzip.compress(lines.encode()))
    address, mark, found = address_of(tmp_path), Mark(), []
    for _ in range(4):
        reader = reader_of(address, max_events=3, start=mark)
        found += [one["key"] for one in read_events(address, reader) if one["change"] != "SCHEMA"]
        mark = mark_of(reader.upto)
    assert found == [f'["{key}"]' for key in range(1, 6)]
    assert mark.nth is None


def test_a_compressed_file_that_was_cut_is_named(tmp_path: Path) -> None:
    whole = gzip.compress((json.dumps(envelope("c", 1, {"id": 1})) + "\n").encode() * 50)
    (tmp_path / "1.json.gz").write_bytes(whole[:-20])
    with pytest.raises(EnvelopeInvalid, match=r"1\.json\.gz: cannot be unpacked"):
        tables(address_of(tmp_path))


def avro_schema(row: list[dict[str, Any]]) -> dict[str, Any]:
    value = {"type": "record", "name": "Value", "namespace": "s.public.t", "fields": row}
    source = {
        "type": "record",
        "name": "Source",
        "fields": [{"name": name, "type": "string"} for name in ("connector", "name", "db", "schema", "table")],
    }
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "s.public.t",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
        ],
    }


ROW = [
    {"name": "id", "type": "int"},
    {
        "name": "total",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}],
        "default": None,
    },
    {
        "name": "made",
        "type": ["null", {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}],
    },
    {"name": "small", "type": [{"type": "int", "connect.type": "int16", "connect.default": 3}, "null"]},
    {"name": "raw", "type": ["null", "bytes"]},
    {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
]


def test_avro_containers_have_the_types_of_their_schema(tmp_path: Path) -> None:
    from decimal import Decimal

    source = {name: str(SOURCE[name]) for name in ("connector", "name", "db", "schema", "table")}
    row = {"id": 1, "total": Decimal("-1.50"), "made": 1, "small": 2, "raw": b"\x00a", "tags": ["x", None]}
    records = [
        {"op": "c", "source": source, "before": None, "after": row},
        {"op": "d", "source": source, "before": row, "after": None},
    ]
    with (tmp_path / "1.avro").open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(avro_schema(ROW)), records)
    schema, insert, delete = read_events(address_of(tmp_path, keys={"public.t": ["id"]}))
    assert [(one["name"], one["type"]["kind"], one["filled"]) for one in schema["payload"]["columns"]] == [
        ("id", "integer", None),
        ("total", "decimal", None),
        ("made", "datetime", None),
        ("small", "smallint", "3"),
        ("raw", "bytes", None),
        ("tags", "array", None),
    ]
    wanted = {"id": "1", "total": "-1.50", "made": "1970-01-01 00:00:00.000001", "small": "2", "raw": "0061"}
    assert insert["payload"] == {**wanted, "tags": '["x", null]'} == delete["payload"]
    assert (insert["change"], delete["change"], delete["key"]) == ("INSERT", "DELETE", '["1"]')


def test_an_avro_container_of_another_schema_is_named(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
    with (tmp_path / "1.avro").open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), [{"id": 1}])
    with pytest.raises(EnvelopeInvalid, match="its schema Order has no before, after, source and op"):
        tables(address_of(tmp_path))


def test_what_is_no_avro_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.avro").write_bytes(b"no container")
    with pytest.raises(EnvelopeInvalid, match="is not a file of envelopes"):
        tables(address_of(tmp_path))


def test_records_are_read_in_every_form_in_which_they_are_landed(tmp_path: Path) -> None:
    kcat = envelope("c", 3, {"id": 3})
    land(
        tmp_path,
        "1.jsonl",
        [
            envelope("c", 1, {"id": 1}),
            {"key": json.dumps({"id": 2}), "value": json.dumps(envelope("c", 2, {"id": 2})["value"])},
            {"topic": "x", "partition": 0, "offset": 1, "key": json.dumps(kcat["key"]), "payload": kcat["value"]},
            {"key": {"id": 2}, "value": None},
            {"ts_ms": 5},
        ],
    )
    assert keys(tmp_path) == ['["1"]', '["2"]', '["3"]']


def test_a_file_that_sorts_before_the_mark_is_named_even_if_another_was_deleted(tmp_path: Path) -> None:
    for name in ("2", "3", "4"):
        land(tmp_path, f"{name}.jsonl", [envelope("c", int(name), {"id": int(name)})])
    landed = landed_at(tmp_path)
    ends = landed.ends()
    landed.require_kept(ends, "there")
    (tmp_path / "2.jsonl").unlink()
    landed.require_kept(ends, "there")  # retention
    late = land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1})])
    with pytest.raises(EnvelopesOutOfOrder, match=r"1\.jsonl"):
        landed.require_kept(ends, "there")
    os.utime(late, (1, 1))
    with pytest.raises(EnvelopesOutOfOrder, match=r"sorts before 4\.jsonl"):
        landed.require_kept(ends, "there")


def test_a_file_that_changes_after_it_was_passed_is_named(tmp_path: Path) -> None:
    first = land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1})])
    land(tmp_path, "2.jsonl", [envelope("c", 2, {"id": 2})])
    landed = landed_at(tmp_path)
    ends = landed.ends()
    with first.open("a") as file:
        file.write("more\n")
    os.utime(first, (4_000_000_000, 4_000_000_000))
    with pytest.raises(EnvelopesOutOfOrder, match=r"1\.jsonl came or changed"):
        landed.require_kept(ends, "there")


def test_a_truncate_of_a_table_in_several_partitions_is_refused(tmp_path: Path) -> None:
    for partition in (0, 1):
        land(tmp_path, f"t/partition={partition}/1.jsonl", [envelope("c", partition, {"id": partition})])
    assert len(keys(tmp_path)) == 2
    land(tmp_path, "t/partition=1/2.jsonl", [envelope("t", None, None)])
    with pytest.raises(EnvelopeInvalid, match="TRUNCATE"):
        keys(tmp_path)


def test_a_truncate_before_the_first_row_of_a_table_stops_nothing(tmp_path: Path) -> None:
    land(tmp_path, "1.jsonl", [envelope("t", None, None, table="new"), envelope("c", 1, {"id": 1})])
    reader = reader_of(address_of(tmp_path))
    told = read_events(address_of(tmp_path), reader)
    assert [(one["table"], one["change"]) for one in told] == [("t", "SCHEMA"), ("t", "INSERT")]
    assert (reader.exhausted, reader.unasked) == (True, set())


def test_a_truncate_before_the_first_row_is_refused_if_other_partitions_may_have_rows(tmp_path: Path) -> None:
    land(tmp_path, "t/partition=0/1.jsonl", [envelope("t", None, None)])
    land(tmp_path, "t/partition=1/1.jsonl", [envelope("c", 1, {"id": 1})])
    reader = reader_of(address_of(tmp_path))
    reader.objects = {}
    with pytest.raises(EnvelopeInvalid, match="TRUNCATE"):
        read_events(address_of(tmp_path), reader)


NO_ENVELOPE = {"key": {"id": 2}, "value": {"op": "?", "source": {**SOURCE, "table": "u"}, "after": {"id": 2}}}


def test_an_envelope_of_an_excluded_table_is_passed_over_whatever_its_form(tmp_path: Path) -> None:
    land(tmp_path, "1.jsonl", [NO_ENVELOPE, envelope("c", 1, {"id": 1})])
    address = address_of(tmp_path)
    with pytest.raises(EnvelopeInvalid, match=r"its op is '\?'.*Correct the file\."):
        tables(address)
    reader = reader_of(address, selection=Selection(exclude=("public.u",)))
    assert [one["change"] for one in read_events(address, reader)] == ["SCHEMA", "INSERT"]
    assert reader.unasked == {"public.u"}
    reader.selection = Selection()
    with pytest.raises(EnvelopeInvalid, match=r"Correct the file\. Or exclude its table\."):
        read_events(address, reader)


def test_a_record_that_names_no_table_is_not_excluded_by_one(tmp_path: Path) -> None:
    land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1})])
    reader = reader_of(address_of(tmp_path))
    land(tmp_path, "1.jsonl", [{"key": None, "value": {"id": 1}}])
    with pytest.raises(EnvelopeInvalid, match=r"no op and no source.*Correct the file\.$"):
        read_events(address_of(tmp_path), reader)


def test_a_place_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="nowhere"):
        landed_at(tmp_path / "nowhere").ends()


def test_a_half_of_a_moved_key_without_the_other_stops_its_object_and_writes_no_null(tmp_path: Path) -> None:
    come = envelope("c", 2, {"id": 2, "v": "__debezium_unavailable_value"})
    land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1, "v": "x"}), come])
    *_, event = read_events(address_of(tmp_path))
    assert (event["change"], event["unchanged"], event["problem"]) == ("INSERT", ["v"], "toasted_key")
    assert event["payload"] == {"id": "2"}


def test_a_row_without_a_schema_after_rows_with_one_is_named(tmp_path: Path) -> None:
    column = {"field": "id", "type": "int32", "optional": False}
    day = {"field": "day", "type": "int32", "optional": True, "name": "io.debezium.time.Date"}
    sides = [{"field": side, "type": "struct", "fields": [column, day]} for side in ("before", "after")]
    first = envelope("c", 1, {"id": 1, "day": 3})
    first["value"] = {"schema": {"type": "struct", "fields": sides}, "payload": first["value"]}
    land(tmp_path, "1.jsonl", [first, envelope("c", 2, {"id": 2, "day": 4})])
    with pytest.raises(EnvelopeInvalid, match="a row without a schema"):
        read_events(address_of(tmp_path))


def test_a_row_that_its_schema_does_not_describe_is_named(tmp_path: Path) -> None:
    sides = [{"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32", "optional": False}]}]
    for number, (row, said) in enumerate(
        [({"id": 1, "x": 2}, "a column x, and its schema"), ({"id": "one"}, "column id has the value 'one'")]
    ):
        record = envelope("c", 1, row)
        record["value"] = {"schema": {"type": "struct", "fields": sides}, "payload": record["value"]}
        land(tmp_path / str(number), "1.jsonl", [record])
        with pytest.raises(EnvelopeInvalid, match=said):
            read_events(address_of(tmp_path / str(number)))


def test_a_column_that_a_default_filled_tells_its_value_and_one_that_cannot_says_so(tmp_path: Path) -> None:
    base = [{"field": "id", "type": "int32", "optional": False}]
    more = [
        *base,
        {"field": "a", "type": "int32", "optional": False, "default": 7},
        {"field": "b", "type": "string", "optional": False},
        {"field": "c", "type": "string", "optional": True},
    ]
    records = []
    for key, columns, row in ((1, base, {"id": 1}), (2, more, {"id": 2, "a": 1, "b": "x", "c": None})):
        record = envelope("c", key, row)
        side = {"field": "after", "type": "struct", "fields": columns}
        record["value"] = {"schema": {"type": "struct", "fields": [side]}, "payload": record["value"]}
        records.append(record)
    land(tmp_path, "1.jsonl", records)
    *_, widened = [one for one in read_events(address_of(tmp_path)) if one["change"] == "SCHEMA"]
    told = {one["name"]: (one["filled"], one["unknown_fill"]) for one in widened["payload"]["columns"]}
    assert told == {"id": (None, False), "a": ("7", False), "b": (None, True), "c": (None, False)}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ('{"key": {"id": 2}, "value": {"op": "c", "sour', "cut off, or is still written"),
        ({"key": {"id": 2}, "value": {"id": 2, "v": "x"}}, "ExtractNewRecordState"),
        (envelope("c", 2, {"id": 2}, connector="mongodb"), "connector is 'mongodb'"),
        (envelope("x", 2, {"id": 2}), "its op is 'x'"),
        (envelope("c", 2, None), "it has no row"),
        (envelope("c", 2, {"id": 2}, table=None), "names no table"),
        ({"key": [1], "value": envelope("c", 2, {"id": 2})["value"]}, "its key is not an object"),
        ("[1]\n", "it is not a JSON object"),
        ("[" * 100_000 + "\n", "nested too deeply"),
        (envelope("c", 2, {"id": 2, "v": "\ud800"}), "surrogates not allowed"),
        ({"key": {"id": 2}, "value": {"op": ["c"], "source": SOURCE, "after": {"id": 2}}}, r"its op is \['c'\]"),
        ({"key": {"id": 2}, "value": {"op": "m", "source": SOURCE, "message": "x"}}, "its message is not an object"),
        (
            {"key": {"id": 2}, "value": {"schema": ["x"], "payload": envelope("c", 2, {"id": 2})["value"]}},
            "another form than Debezium writes",
        ),
    ],
)
def test_what_is_no_envelope_is_named_with_its_file(tmp_path: Path, record: Any, said: str) -> None:
    land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1}), record])
    with pytest.raises(EnvelopeInvalid, match=said) as raised:
        tables(address_of(tmp_path))
    assert "1.jsonl" in str(raised.value)


def test_a_record_without_a_place_for_its_key_has_the_key_that_the_connection_names(tmp_path: Path) -> None:
    land(tmp_path, "1.jsonl", [{"value": envelope("c", 1, {"id": 1})["value"], "headers": {}}])
    assert "extra keys" in str(tables(address_of(tmp_path))["public.t"].unsupported)
    assert keys(tmp_path, keys={"public.t": ["id"]}) == ['["1"]']


@pytest.mark.parametrize("struct", [{"type": "struct", "fields": [{"type": "int32"}]}, {"type": "x"}])
def test_a_schema_of_another_form_makes_its_table_unsupported(tmp_path: Path, struct: dict[str, Any]) -> None:
    value = envelope("c", 1, {"id": 1})["value"]
    schema = {"type": "struct", "fields": [{"field": "after", **struct}]}
    land(tmp_path, "1.jsonl", [{"key": {"id": 1}, "value": {"schema": schema, "payload": value}}])
    assert tables(address_of(tmp_path))["public.t"].unsupported


def test_the_last_row_that_goes_is_named_if_it_cannot_be_read(tmp_path: Path) -> None:
    """It waits for the next envelope, and there is none."""
    gone = envelope("d", 2, None)
    gone["value"]["before"] = {"id": 2, "v": 5}
    land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1, "v": "a"}), gone])
    side = {"type": "struct", "fields": [{"field": "id", "type": "int32"}, {"field": "v", "type": "string"}]}
    records = [json.loads(line) for line in (tmp_path / "1.jsonl").read_text().splitlines()]
    for record in records:
        record["value"] = {"schema": {"fields": [{"field": "after", **side}]}, "payload": record["value"]}
    land(tmp_path, "1.jsonl", records)
    with pytest.raises(EnvelopeInvalid, match="column v has the value '5'"):
        read_events(address_of(tmp_path))


def test_an_avro_container_with_any_wrong_byte_is_named_or_read(tmp_path: Path) -> None:
    source = {name: str(SOURCE[name]) for name in ("connector", "name", "db", "schema", "table")}
    row = {"id": 1, "total": None, "made": 1, "small": 2, "raw": b"a", "tags": ["x"]}
    file = tmp_path / "1.avro"
    with file.open("wb") as opened:
        record = {"op": "c", "source": source, "before": None, "after": row}
        fastavro.writer(opened, fastavro.parse_schema(avro_schema(ROW)), [record], sync_marker=b"0" * 16)
    content, named = file.read_bytes(), 0
    for place in range(0, len(content), 5):
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            read_events(address_of(tmp_path, keys={"*": ["id"]}))
        except EnvelopeInvalid:
            named += 1
    assert named > 50


def test_a_late_file_is_a_change_so_a_reader_looks_and_names_it(tmp_path: Path) -> None:
    land(tmp_path, "2.jsonl", [envelope("c", 2, {"id": 2})])
    before = landed_at(tmp_path).ends()
    assert not landed_at(tmp_path).is_behind(before, landed_at(tmp_path).ends())
    os.utime(land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1})]), (1, 1))
    assert landed_at(tmp_path).is_behind(before, landed_at(tmp_path).ends())


def test_a_late_file_amid_a_run_is_no_part_of_its_marks(tmp_path: Path) -> None:
    land(tmp_path, "2.jsonl", [envelope("c", key, {"id": key}) for key in (2, 3)])
    landed = landed_at(tmp_path)
    ends = landed.ends()
    os.utime(land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1})]), (1, 1))
    *_, last = landed.records({}, ends)
    with pytest.raises(EnvelopesOutOfOrder):
        landed.require_kept({last.lane: last.mark}, "there")


def test_a_key_that_moves_between_partitions_is_a_delete_and_an_insert(tmp_path: Path) -> None:
    gone, come = envelope("d", 1, None), envelope("c", 2, {"id": 2})
    gone["headers"], come["headers"] = {"__debezium.newkey": "2"}, {"__debezium.oldkey": "1"}
    land(tmp_path, "t/partition=0/1.jsonl", [envelope("c", 1, {"id": 1}), gone])
    land(tmp_path, "t/partition=1/1.jsonl", [come])
    told = [(one["change"], one["key"]) for one in read_events(address_of(tmp_path)) if one["change"] != "SCHEMA"]
    assert told == [("INSERT", '["1"]'), ("DELETE", '["1"]'), ("INSERT", '["2"]')]


def test_a_discovery_shows_the_tables_of_the_envelopes_and_what_keeps_one_out(tmp_path: Path) -> None:
    from tidemark.model.source_address import SourceKind
    from tidemark.replication.sources.open import open_source
    from tidemark.replication.worker.source_discovery import discover_source

    unsigned = {"field": "k", "type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}}
    wrong = envelope("c", None, {"k": 1}, table="wrong")
    side = {"field": "after", "type": "struct", "fields": [unsigned]}
    wrong["value"] = {"schema": {"type": "struct", "fields": [side]}, "payload": wrong["value"]}
    land(tmp_path, "1.jsonl", [envelope("c", 1, {"id": 1}), wrong, envelope("c", 1, {"id": 1}, schema="other")])
    found = discover_source(open_source(address_of(tmp_path)), SourceKind.DEBEZIUM)
    assert found.names.schemas == ("other", "public")
    told = {one.name.text: one for one in found.tables}
    assert sorted(told) == ["other.t", "public.t", "public.wrong"]
    assert told["public.t"].schema.keys == ("id",)
    assert "bigint.unsigned.handling.mode" in str(told["public.wrong"].problems)
