"""A golden table for each table feature that Delta can write: what streams show of it is the snapshots' difference.

Features that only writers heed share a table. Each that Delta knows has its place here, or among those refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from pyspark.sql import SparkSession

from tests.engine.lakes import Lake
from tests.engine.oracle import assert_difference
from tidemark.changes.planning.source_support import READABLE_FEATURES

pytestmark = pytest.mark.spark

REFUSED = {"catalogManaged", "adaptiveMetadata-preview"}
WITHOUT_A_TABLE = {"geospatial", "geospatial-dev"}  # Delta 4.4 makes no column of their types


@dataclass(frozen=True)
class Golden:
    """A table that has `features`, with columns k and v; `values` of v are old, other and new."""

    features: str
    columns: str = "k INT, v STRING"
    partitioned: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    values: tuple[str, str, str] = ("'old'", "'other'", "'new'")
    setup: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    case: str = ""

    def __str__(self) -> str:
        return f"{self.features} {self.case}".strip()


def supported(*features: str, **more: str) -> dict[str, str]:
    return {**{f"delta__feature__{feature}": "supported" for feature in features}, **more}


VARIANTS = ('parse_json(\'{"a": 1, "b": [1, "x", null]}\')', "parse_json('[1]')", "parse_json('{\"a\": 1.5}')")
BY_NAME = {"delta__columnMapping__mode": "name"}
BY_ID = {"delta__columnMapping__mode": "id"}
WIDENING = {"delta__enableTypeWidening": "true"}
SHREDDING = {"delta__enableVariantShredding": "true"}
NO_VECTORS = {"delta__enableDeletionVectors": "false"}
NESTED = "k INT, v STRING, s STRUCT<x: INT, `y z`: ARRAY<STRUCT<w: INT>>>, m MAP<STRING, STRUCT<x: INT>>"
FILL = (
    "UPDATE {t} SET s = named_struct('x', k, 'y z', array(named_struct('w', 7))), m = map('a', named_struct('x', k)) "
    "WHERE k = 3"
)
COLUMNS = "k INT NOT NULL, v STRING, g INT GENERATED ALWAYS AS (k * 2), i BIGINT GENERATED ALWAYS AS IDENTITY"

GOLDEN = [
    Golden("deletionVectors", then=("DELETE FROM {t} WHERE k = 3",)),
    Golden("columnMapping", NESTED, properties=BY_NAME, then=(FILL,), case="by name"),
    Golden("columnMapping", NESTED, "PARTITIONED BY (v)", BY_ID, then=(FILL,), case="by id"),
    Golden("typeWidening", properties=WIDENING, then=("ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT",)),
    Golden(
        "typeWidening-preview",
        properties=supported("typeWidening-preview", **WIDENING),
        then=("ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT",),
    ),
    Golden(
        "timestampNtz",
        "k INT, v TIMESTAMP_NTZ",
        values=("TIMESTAMP_NTZ'2020-01-01 00:00:01.5'", "TIMESTAMP_NTZ'1900-01-01'", "NULL"),
    ),
    Golden("variantType", "k INT, v VARIANT", properties=NO_VECTORS, values=VARIANTS),
    Golden("variantType variantShredding-preview", "k INT, v VARIANT", properties=SHREDDING, values=VARIANTS),
    Golden(
        "variantType-preview variantShredding",
        "k INT, v VARIANT",
        properties=supported("variantType-preview", "variantShredding", **SHREDDING),
        values=VARIANTS,
    ),
    Golden(
        "generatedColumns identityColumns allowColumnDefaults checkConstraints invariants materializePartitionColumns",
        f"{COLUMNS}, d INT DEFAULT 7",
        "PARTITIONED BY (g)",
        supported("allowColumnDefaults", "materializePartitionColumns"),
        setup=("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (k > 0)",),
    ),
    Golden(
        "inCommitTimestamp coordinatedCommits-preview vacuumProtocolCheck checkpointProtection v2Checkpoint",
        properties={
            **supported("coordinatedCommits-preview", "checkpointProtection"),
            "delta__enableInCommitTimestamps": "true",
            "delta__checkpointPolicy": "v2",
            "delta__checkpointInterval": "1",
        },
    ),
    Golden("changeDataFeed", properties={"delta__enableChangeDataFeed": "true"}),
    Golden("clustering", partitioned="CLUSTER BY (k)", then=("OPTIMIZE {t} FULL",)),
    Golden("icebergCompatV1", properties={"delta__enableIcebergCompatV1": "true", **BY_NAME, **NO_VECTORS}),
    Golden("icebergCompatV2", properties={"delta__enableIcebergCompatV2": "true", **BY_NAME, **NO_VECTORS}),
    Golden("icebergCompatV3", NESTED, "PARTITIONED BY (v)", {"delta__enableIcebergCompatV3": "true", **BY_NAME}),
]


@pytest.mark.parametrize("golden", GOLDEN, ids=str)
def test_changes_are_the_difference_of_the_snapshots(lake: Lake, golden: Golden) -> None:
    """A row of each kind: updated, deleted, inserted, left alone; by one MERGE, and what else the feature brings."""
    old, other, new = golden.values
    lake.create(golden.columns, golden.partitioned, **golden.properties)
    lake.sql(*golden.setup)
    start = lake.sql(f"INSERT INTO {{t}} (k, v) VALUES (1, {old}), (2, {other}), (3, {old}), (4, {other})")
    lake.sql(
        f"MERGE INTO {{t}} t USING (SELECT EXPLODE(ARRAY(1, 2, 5)) AS k) s ON t.k = s.k "
        f"WHEN MATCHED AND s.k = 1 THEN UPDATE SET v = {new} WHEN MATCHED THEN DELETE "
        f"WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, {new})",
        *golden.then,
    )
    protocol = lake.log.state().protocol
    assert {*golden.features.split()} <= {*protocol.reader_features, *protocol.writer_features}
    assert len(assert_difference(lake, start)) >= 4


def test_append_only_tables_are_read(lake: Lake) -> None:
    start = lake.create(delta__appendOnly="true").sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql("INSERT INTO {t} VALUES (2, 'b')", "OPTIMIZE {t}", "INSERT INTO {t} VALUES (3, 'c')")
    assert len(assert_difference(lake, start)) == 2


def test_variants_are_compared_by_value_and_type(lake: Lake) -> None:
    """R54, for a type that Spark cannot compare: the order of fields is none, a date is not its text, NULL not null."""
    given = ('parse_json(\'{"a": 1, "b": [2]}\')', "CAST(DATE'2020-01-01' AS VARIANT)", "NULL", "parse_json('1')")
    start = lake.create("k INT, v VARIANT, s STRUCT<v: VARIANT>").sql(
        *(f"INSERT INTO {{t}} SELECT {k}, v, named_struct('v', v) FROM (SELECT {v} v)" for k, v in enumerate(given))
    )
    lake.sql(
        'UPDATE {t} SET v = CASE k WHEN 0 THEN parse_json(\'{"b": [2], "a": 1}\') '
        "WHEN 1 THEN CAST('2020-01-01' AS VARIANT) WHEN 2 THEN parse_json('null') ELSE v END"
    )
    assert sorted((row[2], row[0]) for row in lake.changes(start)) == [
        *((1, "DELETE"), (1, "INSERT"), (2, "DELETE"), (2, "INSERT"))
    ]
    assert lake.frame(lake.version).dtypes == lake.frame(start).dtypes, "an empty window has the same columns"


def test_strings_with_a_collation_are_compared_by_bytes(lake: Lake) -> None:
    """Delta makes them only if told so, and writes no feature for them. To their collation a and A are equal."""
    lake.spark = lake.spark.newSession()
    lake.spark.conf.set("spark.databricks.delta.schema.typeCheck.enabled", "false")
    lake.create("k INT, v STRING COLLATE UNICODE_CI, a ARRAY<STRING COLLATE UTF8_LCASE>")
    start = lake.sql("INSERT INTO {t} VALUES (1, 'a', array('a')), (2, 'b', array('b')), (3, 'c', array('c'))")
    lake.sql("UPDATE {t} SET v = IF(k = 1, 'A', v), a = IF(k = 2, array('B'), a)")
    assert lake.changes(start) == [
        ("DELETE", True, 1, "a", ["a"]),
        ("DELETE", True, 2, "b", ["b"]),
        ("INSERT", True, 1, "A", ["a"]),
        ("INSERT", True, 2, "b", ["B"]),
    ]
    assert lake.frame(lake.version).dtypes == lake.frame(start).dtypes, "an empty window has the same columns"


def test_every_feature_that_delta_knows_has_been_thought_of(spark: SparkSession) -> None:
    """A new release of Delta with a new feature fails here, and needs a golden table or a reason."""
    assert spark._jvm is not None
    features = getattr(spark._jvm.org.apache.spark.sql.delta, "TableFeature$").__getattr__("MODULE$")
    known = set(features.allSupportedFeaturesMap().keySet().mkString(" ").split())
    kept_by_all = {"rowTracking", "domainMetadata", "appendOnly"}
    tested = {feature for golden in GOLDEN for feature in golden.features.split()}
    assert known == {name.lower() for name in tested | kept_by_all | REFUSED | WITHOUT_A_TABLE}
    assert {name.lower() for name in READABLE_FEATURES} == known - {name.lower() for name in REFUSED}
