"""A table of a MariaDB or MySQL is copied as it is, by several sessions that stop no other."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.databases.mariadb import USER, BinlogServer, mariadb_or_skip
from tests.databases.mysql_server import mysql_or_skip
from tests.tiers import some
from tidemark.errors import BackfillGaveWay, ObjectNotReplicable, SourceIsAnother, ValueDoesNotFit
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.jobs.workspace import Workspace
from tidemark.model.source_address import SourceAddress
from tidemark.model.streams import TableRef
from tidemark.replication.driver.copies import TableCopy
from tidemark.replication.driver.open_copy import table_copy
from tidemark.replication.driver.values import named_invalid_value
from tidemark.replication.model.jobs import BackfillObject, ColumnRules
from tidemark.replication.model.replication import (
    InvalidValues,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    TableSchema,
    WriteMode,
)
from tidemark.replication.planning.hiding import hasher, mark_of
from tidemark.replication.planning.positions import epoch_of
from tidemark.replication.sources.mysql.catalog import system_id_of
from tidemark.replication.sources.mysql.connection import connect
from tidemark.replication.sources.mysql.log_files import visible_end

pytestmark = pytest.mark.spark

SECRET = "a secret of enough characters"
PATIENCE = timedelta(minutes=1)


@pytest.fixture(scope="module", params=some(["mariadb", "mysql"], ["mariadb"], "a server that has to be fetched first"))
def server(request: pytest.FixtureRequest) -> Iterator[BinlogServer]:
    with (mariadb_or_skip if request.param == "mariadb" else mysql_or_skip)() as running:
        yield running


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(str(tmp_path), "copies") as one:
        yield one


class Shop:
    """A database with the table `t`."""

    def __init__(self, server: BinlogServer, workspace: Workspace, *statements: str) -> None:
        self.server, self.database, self.workspace = server, server.new_database(), workspace
        for text in statements:
            self.sql(text)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.server.sql(text, self.database)

    @property
    def address(self) -> SourceAddress:
        found = self.server.address(self.database)
        return SourceAddress(**{**found.__dict__, "hash_secret": SECRET})

    @property
    def system_id(self) -> str:
        with connect(self.address) as connection:
            return system_id_of(connection)

    def request(self, mode: WriteMode = WriteMode.MERGE, **more: Any) -> BackfillObject:
        one = ReplicatedObject(
            uid="uid-of-t",
            replication_uid="uid-1",
            name=ObjectName(self.database, "t"),
            source_id=f"{self.database}.t",
            schema=TableSchema(()),
            mode=mode,
            target=TableRef("t", "/nowhere", ""),
            state=ObjectState.ACTIVE,
        )
        given: dict[str, Any] = {"partitions": 1, "expected_rows": 10, **more}
        return BackfillObject(
            replication_uid="uid-1",
            stream="shop",
            object=one,
            kind=self.server.kind,
            number=1,
            event_log="/nowhere",
            system_id=self.system_id,
            invalid_values=InvalidValues.FAIL,
            batches=0,
            **given,
        )

    def copy(self, **more: Any) -> AbstractContextManager[TableCopy]:
        return table_copy(self.request(**more), self.address, PATIENCE, self.workspace)

    def rows(self, spark: SparkSession, **more: Any) -> list[dict[str, Any]]:
        with self.copy(**more) as copy:
            found = copy.rows(spark, False).collect()
        return sorted((row.asDict() for row in found), key=lambda row: str(row.get("id")))


TYPES = """CREATE TABLE t (
    id INT PRIMARY KEY, tiny TINYINT(1), small SMALLINT UNSIGNED, medium MEDIUMINT, big BIGINT UNSIGNED,
    price DECIMAL(20,4), f FLOAT, d DOUBLE, flags BIT(10), b BINARY(4), vb VARBINARY(10), bl BLOB, c CHAR(5),
    v VARCHAR(20), tx LONGTEXT, day DATE, dt DATETIME(6), ts TIMESTAMP(3) NULL, tm TIME(2), y YEAR, e ENUM('a','b'),
    s SET('x','y'), js JSON)"""
ROW = """INSERT INTO t VALUES (1, 2, 65535, -8388608, 18446744073709551615, 1234567890123456.7891, 0.1, 1e300,
    b'1000000001', 'ab', x'00ff00', x'0102', 'é', '日本語 😀', 'long', '2024-02-29', '2024-02-29 12:00:00.123456',
    '2024-02-29 12:00:00.123', '-838:59:59', 1999, 'b', 'x,y', '{"a": 1}')"""
NO_METADATA = {"datastream_metadata": None}
NOTHING = "INSERT INTO t (id) VALUES (2)"


def test_values_of_every_type_arrive_as_they_are(
    spark: SparkSession, server: BinlogServer, workspace: Workspace
) -> None:
    shop = Shop(server, workspace, TYPES, "SET time_zone = '+00:00'", ROW, NOTHING)
    (one, two) = shop.rows(spark)
    metadata = one.pop("datastream_metadata")
    assert metadata.uuid
    assert str(one.pop("price")) == "1234567890123456.7891"
    assert int(one.pop("big")) == 18446744073709551615
    assert one.pop("f") == pytest.approx(0.1)
    ts = one.pop("ts")
    assert one == {
        "id": 1, "tiny": 2, "small": 65535, "medium": -8388608, "d": 1e300, "flags": 513,
        "b": bytearray(b"ab\0\0"), "vb": bytearray(b"\0\xff\0"), "bl": bytearray(b"\1\2"), "c": "é", "v": "日本語 😀",
        "tx": "long", "day": date(2024, 2, 29), "dt": datetime.fromisoformat("2024-02-29 12:00:00.123456"),
        "tm": "-838:59:59.00", "y": 1999, "e": "b", "s": "x,y", "js": '{"a": 1}',
    }  # fmt: skip
    assert ts is not None
    assert {name for name, value in two.items() if value is not None} == {"id", "datastream_metadata"}


def test_rows_have_uuids_of_their_own_whatever_is_in_their_keys(
    spark: SparkSession, server: BinlogServer, workspace: Workspace
) -> None:
    shop = Shop(
        server, workspace, "CREATE TABLE t (a VARCHAR(9), b VARCHAR(9), c VARBINARY(4), PRIMARY KEY (a, b, c))",
        "INSERT INTO t VALUES ('x|y', 'z', ''), ('x', 'y|z', ''), ('x|1:y', 'z', ''), ('', 'x', x'fe'),"
        " ('', 'x', x'ff')",
    )  # fmt: skip
    assert len({row["datastream_metadata"].uuid for row in shop.rows(spark)}) == 5


@pytest.mark.parametrize("has_key", some([True, False], [False]), ids=["of a log", "without a key"])
def test_one_session_reads_the_same_values(
    spark: SparkSession, server: BinlogServer, workspace: Workspace, has_key: bool
) -> None:
    shop = Shop(server, workspace, TYPES, "SET time_zone = '+00:00'", ROW, NOTHING)
    several = shop.rows(spark)
    if not has_key:
        shop.sql("ALTER TABLE t DROP PRIMARY KEY")
    one = shop.rows(spark, mode=WriteMode.APPEND_ONLY if has_key else WriteMode.MERGE)
    values = [{name: row[name] for name in several[0]} for row in one]
    assert [row | NO_METADATA for row in values] == [row | NO_METADATA for row in several]


def test_a_copy_is_encrypted_where_the_server_can_do_it(spark: SparkSession, tmp_path: Path) -> None:
    """Without a word of it in the connection, for a user who may not come in without TLS."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=db", "-days", "2"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    for part in (key, certificate, *list(tmp_path.parents)[:2], tmp_path):
        part.chmod(0o755)
    with (
        mariadb_or_skip((f"--ssl-key={key}", f"--ssl-cert={certificate}")) as server,
        Workspace(str(tmp_path), "copies") as workspace,
    ):
        shop = Shop(server, workspace, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        shop.sql(f"ALTER USER {USER}@'%' REQUIRE SSL")
        assert [row["id"] for row in shop.rows(spark)] == [1]


def test_several_sessions_read_each_row_once(spark: SparkSession, server: BinlogServer, workspace: Workspace) -> None:
    shop = Shop(server, workspace, "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, v MEDIUMTEXT)")
    shop.sql(f"INSERT INTO t {numbers(5000)} SELECT n * 7, IF(n % 100 = 0, REPEAT('w', 100000), 'v') FROM numbers")
    with shop.copy(partitions=4, expected_rows=50_000) as copy:
        read = copy.rows(spark, False)
        found = read.selectExpr("id", "length(v) AS size").collect()
    assert sorted(int(row.id) for row in found) == [7 * one for one in range(1, 5001)]
    assert sum(row.size == 100_000 for row in found) == 50
    assert read.rdd.getNumPartitions() == 8  # four parts, of narrow rows and of wide ones


def test_the_position_is_before_every_change_that_a_copy_may_not_have(
    spark: SparkSession, server: BinlogServer, workspace: Workspace
) -> None:
    shop = Shop(server, workspace, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with connect(shop.address) as connection:
        before = visible_end(connection, shop.address).position
    with shop.copy() as copy:
        shop.sql("INSERT INTO t VALUES (2)")  # rows may change while a copy is made
        with connect(shop.address) as connection:
            assert before <= copy.position < visible_end(connection, shop.address).position
        assert len(copy.rows(spark, False).collect()) == 2


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"], ids=["without a key", "of a log"])
def test_a_copy_that_events_cannot_repair_is_exactly_of_its_position(
    spark: SparkSession, server: BinlogServer, workspace: Workspace, key: str
) -> None:
    shop = Shop(server, workspace, f"CREATE TABLE t (id INT{key})", "INSERT INTO t VALUES (1), (2)")
    mode = WriteMode.APPEND_ONLY if key else WriteMode.MERGE
    with shop.copy(mode=mode) as copy:
        with connect(shop.address) as connection:
            assert copy.position == visible_end(connection, shop.address).position
        shop.sql("INSERT INTO t VALUES (3)")
        shop.sql("DELETE FROM t WHERE id = 1")
        assert sorted(row.id for row in copy.rows(spark, False).collect()) == [1, 2]


def test_one_session_reads_an_empty_table_and_hides_what_is_hidden(
    spark: SparkSession, server: BinlogServer, workspace: Workspace
) -> None:
    shop = Shop(server, workspace, "CREATE TABLE t (id INT, mail VARCHAR(20), pin INT)")
    rules = ColumnRules(mask=(f"{shop.database}.t.pin",), hash=(f"{shop.database}.t.mail",), hash_mark=mark_of(SECRET))
    assert shop.rows(spark, rules=rules) == []
    shop.sql("INSERT INTO t VALUES (1, 'é', 7)")
    (row,) = shop.rows(spark, rules=rules)
    assert (row["mail"], row["pin"]) == (hasher(SECRET)("é"), "****")


def test_hidden_columns_leave_the_source_hidden(
    spark: SparkSession, server: BinlogServer, workspace: Workspace
) -> None:
    shop = Shop(
        server,
        workspace,
        "CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(20), pin INT)",
        "INSERT INTO t VALUES (1, 'é', 7)",
    )
    rules = ColumnRules(mask=(f"{shop.database}.t.pin",), hash=(f"{shop.database}.t.mail",), hash_mark=mark_of(SECRET))
    (row,) = shop.rows(spark, rules=rules)
    assert (row["mail"], row["pin"]) == (hasher(SECRET)("é"), "****")


def test_a_date_that_is_none_is_named(spark: SparkSession, server: BinlogServer, workspace: Workspace) -> None:
    shop = Shop(
        server,
        workspace,
        "CREATE TABLE t (id INT PRIMARY KEY, day DATE)",
        "INSERT IGNORE INTO t VALUES (1, '0000-00-00')",
    )
    with pytest.raises(SPARK_FAILURES) as caught:
        shop.rows(spark)
    error = named_invalid_value(str(caught.value))
    assert isinstance(error, ValueDoesNotFit)
    assert "0000-00-00" in str(error)


def test_an_alter_that_waits_for_a_copy_is_let_through(
    spark: SparkSession, server: BinlogServer, workspace: Workspace
) -> None:
    shop = Shop(server, workspace, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with shop.copy(gives_way_after=1.0) as copy:
        began = time.monotonic()
        shop.sql("ALTER TABLE t ADD COLUMN v INT DEFAULT 7")
        assert time.monotonic() - began < 20
        error = failed(copy, spark)
    assert isinstance(error, BackfillGaveWay)
    assert "ALTER TABLE t" in str(error)


def test_readers_fail_once_the_session_that_holds_the_table_is_gone(
    spark: SparkSession, server: BinlogServer, workspace: Workspace
) -> None:
    shop = Shop(
        server,
        workspace,
        "CREATE TABLE t (id INT PRIMARY KEY)",
        f"INSERT INTO t {numbers(50_000)} SELECT n FROM numbers",
    )
    with shop.copy(gives_way_after=60.0) as copy:
        for (session,) in shop.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'tidemark'"):
            shop.server.sql(f"KILL {session}")
        assert isinstance(failed(copy, spark), BackfillGaveWay)


def test_a_table_that_is_locked_or_gone_is_named_at_once(server: BinlogServer, workspace: Workspace) -> None:
    shop = Shop(server, workspace, "CREATE TABLE t (id INT PRIMARY KEY)")
    holder = shop.server.connection(shop.database)
    holder.cursor().execute("LOCK TABLES t WRITE")
    with pytest.raises(BackfillGaveWay, match="locked"), shop.copy():
        pass
    holder.close()
    shop.sql("DROP TABLE t")
    with pytest.raises(ObjectNotReplicable, match="gone"), shop.copy():
        pass


def test_a_copy_is_of_the_server_whose_log_completes_it(server: BinlogServer, workspace: Workspace) -> None:
    """Its position is of the log's epoch, and another server is refused before anything is read."""
    shop = Shop(server, workspace, "CREATE TABLE t (id INT PRIMARY KEY)")
    with shop.copy(epoch=3) as copy:
        assert epoch_of(copy.position) == 3
    another = replace(shop.request(), system_id="0-1")
    with pytest.raises(SourceIsAnother), table_copy(another, shop.address, PATIENCE, workspace):
        pass


def numbers(most: int) -> str:
    """The table `numbers` of 1 to `most`, for a query."""
    digits = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
    places = ", ".join(f"digits AS d{place}" for place in range(5))
    number = " + ".join(f"d{place}.d * {10**place}" for place in range(5))
    return f"WITH digits AS ({digits}), numbers AS (SELECT {number} + 1 AS n FROM {places} HAVING n <= {most})"


def failed(copy: TableCopy, spark: SparkSession) -> Exception | None:
    with pytest.raises(SPARK_FAILURES) as caught:
        copy.rows(spark, False).collect()
    return copy.failure(str(caught.value))
