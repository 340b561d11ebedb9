"""The JSON forms of all types that Delta has."""

from __future__ import annotations

import json

import pytest

from tests.engine.change_streams.captured import on_one_table
from tests.engine.lakes import Lake
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.spark

COLUMNS = {
    "b8": ("TINYINT", "-128Y", '"-128"', {"code": "INT64"}),
    "b16": ("SMALLINT", "32767S", '"32767"', {"code": "INT64"}),
    "b32": ("INT", "5", '"5"', {"code": "INT64"}),
    "b64": ("BIGINT", "-9223372036854775808", '"-9223372036854775808"', {"code": "INT64"}),
    "f32": ("FLOAT", "float('0.1')", "0.1", {"code": "FLOAT32"}),
    "f64": ("DOUBLE", "1e300D", "1.0E300", {"code": "FLOAT64"}),
    "nan": ("DOUBLE", "double('NaN')", '"NaN"', {"code": "FLOAT64"}),
    "inf": ("FLOAT", "float('-Infinity')", '"-Infinity"', {"code": "FLOAT32"}),
    "d0": ("DECIMAL(38,0)", "12345678901234567890123456789012345678", '"12345678901234567890123456789012345678"',
           {"code": "NUMERIC"}),
    "d2": ("DECIMAL(10,2)", "-3.10", '"-3.1"', {"code": "NUMERIC"}),
    "d18": ("DECIMAL(38,18)", "0.000000000000000001", '"0.000000000000000001"', {"code": "NUMERIC"}),
    "d9": ("DECIMAL(20,9)", "12345678900", '"12345678900"', {"code": "NUMERIC"}),
    "dz": ("DECIMAL(38,38)", "0", '"0"', {"code": "NUMERIC"}),
    "t": ("BOOLEAN", "true", "true", {"code": "BOOL"}),
    "s": ("STRING", "'é\"\\\\\\n\\t}{'", json.dumps('é"\\\n\t}{', ensure_ascii=False), {"code": "STRING"}),
    "vc": ("VARCHAR(5)", "'x'", '"x"', {"code": "STRING"}),
    "bin": ("BINARY", "X'00FF10'", '"AP8Q"', {"code": "BYTES"}),
    "day": ("DATE", "DATE'1066-10-14'", '"1066-10-14"', {"code": "DATE"}),
    "ts": ("TIMESTAMP", "TIMESTAMP'2026-01-02 03:04:05.000006+02:00'", '"2026-01-02T01:04:05.000006Z"',
           {"code": "TIMESTAMP"}),
    "ntz": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2026-01-02 03:04:05'", '"2026-01-02T03:04:05.000000"',
            {"code": "TIMESTAMP_NTZ"}),
    "j": ("VARIANT", "parse_json('{\"b\":[1,null],\"a\":\"x\"}')", json.dumps('{"a":"x","b":[1,null]}'),
          {"code": "JSON"}),
    "a": ("ARRAY<BIGINT>", "array(1L, NULL)", '["1",null]',
          {"code": "ARRAY", "array_element_type": {"code": "INT64"}}),
    "as": ("ARRAY<STRING>", "array()", "[]", {"code": "ARRAY", "array_element_type": {"code": "STRING"}}),
    "st": ("STRUCT<`x.y`: INT, z: STRUCT<d: DATE>>", "named_struct('x.y', 1, 'z', NULL)",
           '{"x.y":"1","z":null}',
           {"code": "STRUCT", "struct_type": {"fields": [
               {"name": "x.y", "type": {"code": "INT64"}},
               {"name": "z", "type": {"code": "STRUCT", "struct_type": {"fields": [
                   {"name": "d", "type": {"code": "DATE"}}]}}}]}}),
    "m": ("MAP<STRING, ARRAY<DECIMAL(5,1)>>", "map('b', array(2.50), 'a', NULL)", '{"a":null,"b":["2.5"]}',
          {"code": "MAP", "map_key_type": {"code": "STRING"},
           "map_value_type": {"code": "ARRAY", "array_element_type": {"code": "NUMERIC"}}}),
    "mt": ("MAP<TIMESTAMP, INT>", "map(TIMESTAMP'2026-01-02 00:00:00Z', 1)", '{"2026-01-02T00:00:00.000000Z":"1"}',
           {"code": "MAP", "map_key_type": {"code": "TIMESTAMP"}, "map_value_type": {"code": "INT64"}}),
    "mi": ("MAP<INT, BOOLEAN>", "map(10, true, 9, false)", '{"10":true,"9":false}',
           {"code": "MAP", "map_key_type": {"code": "INT64"}, "map_value_type": {"code": "BOOL"}}),
}  # fmt: skip


def test_every_type_has_its_form_alone_and_in_a_whole_row(lake: Lake, workspace: Workspace) -> None:
    listed = ", ".join(f"`{name}` {kind}" for name, (kind, *_) in COLUMNS.items())
    lake.create(f"k INT, {listed}")
    captured = on_one_table(lake, workspace)
    values = ", ".join(value for _, value, *_ in COLUMNS.values())
    lake.spark.conf.set("spark.sql.session.timeZone", "Asia/Seoul")
    lake.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        lake.sql(
            f"INSERT INTO {{t}} SELECT 1, {values}",
            "UPDATE {t} SET " + ", ".join(f"`{name}` = NULL" for name in COLUMNS),
        )
        captured.capture(lake.version)
    finally:
        lake.spark.conf.unset("spark.sql.session.timeZone")
        lake.spark.conf.unset("spark.sql.ansi.enabled")

    insert, update = captured.rows()
    expected = "{" + ",".join(f'"{name}":{COLUMNS[name][2]}' for name in sorted(COLUMNS)) + "}"
    assert insert["new_values"] == expected
    assert update["old_values"] == expected
    assert json.loads(update["new_values"]) == dict.fromkeys(COLUMNS)
    types = {kind["name"]: kind["type"] for kind in json.loads(insert["column_types"])}
    assert types == {"k": {"code": "INT64"}} | {name: code for name, (*_, code) in COLUMNS.items()}


KEYS = "a TIMESTAMP, b DECIMAL(12,4), c STRING, d DOUBLE, e BINARY, f DATE"


def test_keys_of_many_types_and_null_keys_are_text(lake: Lake, workspace: Workspace) -> None:
    lake.create(f"{KEYS}, v INT")
    captured = on_one_table(lake, workspace, keys=("a", "b", "c", "d", "e", "f"))
    lake.sql(
        "INSERT INTO {t} VALUES (TIMESTAMP'2026-01-02 00:00:00Z', 1.5, 'x', double('NaN'), X'01', DATE'2026-01-01', 1),"
        " (NULL, NULL, NULL, NULL, NULL, NULL, 2)",
        "UPDATE {t} SET v = v + 10",
    )
    captured.capture(lake.version)
    text = '{"a":"2026-01-02T00:00:00.000000Z","b":"1.5","c":"x","d":"NaN","e":"AQ==","f":"2026-01-01"}'
    null = '{"a":null,"b":null,"c":null,"d":null,"e":null,"f":null}'
    assert sorted((row["mod_type"], row["keys"]) for row in captured.rows()) == sorted(
        (kind, keys) for kind in ("INSERT", "UPDATE") for keys in (text, null)
    )
