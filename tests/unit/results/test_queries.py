"""Which queries may be answered again, and the words for those that may not."""

from __future__ import annotations

import re
from datetime import date

import pytest

from tidemark.errors import InvalidArgument
from tidemark.results.model.answers import Leaf, Miss, Why
from tidemark.results.planning.functions import PURE, reason_against
from tidemark.results.planning.keys import digest_of, key_of
from tidemark.results.planning.qualifiers import unclear
from tidemark.results.planning.queries import Query, TablePoint, digests_of, normalised, pinned, read_query
from tidemark.results.planning.settings import affecting

REFUSED = {
    "SELECT rand() FROM t": (Why.NON_DETERMINISTIC, "rand gives another value at each call"),
    "SELECT id FROM t ORDER BY uuid()": (Why.NON_DETERMINISTIC, "uuid"),
    "SELECT * FROM t TABLESAMPLE (10 PERCENT)": (Why.NON_DETERMINISTIC, "TABLESAMPLE"),
    "SELECT first(x) FROM t": (Why.NON_DETERMINISTIC, "first depends on the order of the rows"),
    "SELECT collect_list(x) FROM t": (Why.NON_DETERMINISTIC, "collect_list"),
    "SELECT first(x) OVER (ORDER BY y), first(x) FROM t": (Why.NON_DETERMINISTIC, "first"),
    "SELECT * FROM t WHERE at > now()": (Why.CLOCK, "now is another time at each call"),
    "SELECT current_timestamp FROM t": (Why.CLOCK, "current_timestamp"),
    "SELECT unix_timestamp() FROM t": (Why.CLOCK, "unix_timestamp"),
    "SELECT * FROM t WHERE d = DATE'today'": (Why.CLOCK, "'today' as a date"),
    "SELECT * FROM t WHERE d >= 'yesterday'": (Why.CLOCK, "'yesterday' as a date"),
    "SELECT to_date('today') FROM t": (Why.CLOCK, "'today' as a date"),
    "SELECT * FROM t WHERE at > TIMESTAMP'today Europe/Paris'": (Why.CLOCK, "'today Europe/Paris' as a date"),
    "SELECT * FROM t WHERE at > TIMESTAMP'10:00'": (Why.CLOCK, "'10:00' as a date or a time"),
    "SELECT CAST('T09:30' AS TIMESTAMP) FROM t": (Why.CLOCK, "'T09:30' as a date or a time"),
    "SELECT try_cast(('9:' '30:00 UTC') AS TIMESTAMP_LTZ) FROM t": (Why.CLOCK, "'9:30:00 UTC' as a date"),
    "SELECT '10:00'::timestamp FROM t": (Why.CLOCK, "'10:00' as a date or a time"),
    "SELECT to_timestamp('T10') FROM t": (Why.CLOCK, "'T10' as a date or a time"),
    "SELECT try_to_timestamp('10:00') FROM t": (Why.CLOCK, "'10:00' as a date or a time"),
    "SELECT current_user() FROM t": (Why.SESSION, "current_user depends on the session"),
    "SELECT session_user FROM t": (Why.SESSION, "session_user"),
    "SELECT $limit FROM t": (Why.SESSION, "variable or a parameter"),
    "SELECT :limit FROM t": (Why.SESSION, "variable or a parameter"),
    "SELECT * FROM t LIMIT ${rows}": (Why.SESSION, "replaced by a setting"),
    "SELECT my_function(x) FROM t": (Why.FUNCTION, "my_function is not a function of Spark 4.2"),
    "SELECT `my-udf`(x) FROM t": (Why.FUNCTION, "my-udf is not a function of Spark"),
    "SELECT x FROM t WHERE `a b`(x) > 0": (Why.FUNCTION, "a b is not a function of Spark"),
    "SELECT z FROM t LATERAL VIEW `my-rows`(x) e AS z": (Why.FUNCTION, "my-rows is not a function of Spark"),
    "SELECT shop.rate(x) FROM t": (Why.FUNCTION, "rate"),
    "SELECT trim(BOTH uuid() FROM x) FROM t": (Why.NON_DETERMINISTIC, "uuid"),
    "SELECT overlay(x PLACING my_udf(y) FROM 2) FROM t": (Why.FUNCTION, "my_udf"),
    "SELECT * FROM t |> EXTEND uuid() AS u": (Why.NON_DETERMINISTIC, "uuid"),
    "SELECT rows(x) FROM t": (Why.FUNCTION, "rows is not a function"),
    "SELECT offset(x) FROM t": (Why.FUNCTION, "offset is not a function"),
    "SELECT `limit`(x) FROM t": (Why.FUNCTION, "limit is not a function"),
    "SELECT TRANSFORM(x) USING 'date' AS (y) FROM t": (Why.FUNCTION, "TRANSFORM … USING runs a program"),
    "SELECT aes_encrypt(x, y) FROM t": (Why.NON_DETERMINISTIC, "aes_encrypt gives another value"),
    "SELECT kll_sketch_agg_bigint(x) FROM t": (Why.NON_DETERMINISTIC, "kll_sketch_agg_bigint"),
    "SELECT from_protobuf(x, 'M', '/f') FROM t": (Why.FUNCTION, "may read a file of descriptors"),
    "SELECT CAST('to' 'day' AS DATE) FROM t": (Why.CLOCK, "'today' as a date"),
    "SELECT reflect('java.util.UUID', 'randomUUID') FROM t": (Why.FUNCTION, "reflect calls code"),
    "WITH f(a) AS (SELECT 1) SELECT f(a) FROM f": (Why.FUNCTION, "f is not a function"),
    "SELECT * FROM table_changes('t', 1)": (Why.TABLE_FUNCTION, "table_changes may read other tables"),
    "SELECT * FROM IDENTIFIER('t')": (Why.TABLE_FUNCTION, "may read other tables"),
    "SELECT _metadata.file_name FROM t": (Why.FILE_METADATA, "_metadata"),
    "SELECT input_file_name() FROM t": (Why.FILE_METADATA, "input_file_name"),
    "SELECT * FROM t VERSION AS OF 1 + 1": (Why.TIME_TRAVEL, "not a constant"),
    "SELECT * FROM t TIMESTAMP AS OF date_sub(DATE'2026-01-01', 1)": (Why.TIME_TRAVEL, "not a constant"),
    "SELECT * FRM t": (Why.NOT_UNDERSTOOD, "cannot be parsed"),
}
REUSED = {
    "SELECT user, key FROM shop.t": ("shop.t",),
    "WITH `w x`(a) AS (SELECT `sum`(x) FROM t) SELECT * FROM `w x` AS `e f`(b) WHERE `b` IN (1)": ("t",),
    "SELECT '10:00', to_timestamp('10:00', 'HH:mm'), TIMESTAMP'2026-01-01 10:00' FROM t WHERE slot = 'T10'": ("t",),
    "SELECT CAST(concat(day, ' 10:00') AS TIMESTAMP) FROM t": ("t",),
    "SELECT 'nowhere', 'not today' FROM t WHERE d > '2026-01-01'": ("t",),
    "WITH c (a, b) AS (SELECT x, y FROM t), d(z) AS (SELECT 1) SELECT c.a FROM c JOIN d e(q) ON c.a = e.q": ("t",),
    "WITH t AS (SELECT * FROM t) SELECT * FROM t JOIN s.t USING (id)": ("t", "s.t"),
    "SELECT first_value(x) OVER (PARTITION BY a ORDER BY b) FROM t": ("t",),
    "SELECT transform(a, y -> y + 1), unix_timestamp(d), current_date FROM t": ("t",),
    "SELECT CAST(x AS numeric(9, 2)) FROM t AS a(x, y) WHERE exists(z, e -> e > 1)": ("t",),
    "SELECT id FROM range(3) LATERAL VIEW explode(array(1)) e AS z": (),
    "SELECT `rand` FROM delta.`/data/t` a, delta.`/data/u` b": ("delta.`/data/t`", "delta.`/data/u`"),
    "SELECT x FROM a UNION ALL SELECT x FROM b EXCEPT (SELECT x FROM a)": ("a", "b"),
    "SELECT CASE WHEN (x) THEN (1) END, CAST(x AS DECIMAL(9, 2)), x IN (1, 2) FROM t WHERE EXISTS (SELECT 1 FROM u)": (
        "t",
        "u",
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_queries_that_are_never_answered_again_have_a_reason(text: str) -> None:
    found = read_query(text)
    assert isinstance(found, Miss)
    why, words = REFUSED[text]
    assert (found.why, words in found.text, found.stores) == (why, True, False), found


@pytest.mark.parametrize("text", REUSED)
def test_other_queries_have_their_tables_in_the_order_of_the_text(text: str) -> None:
    found = read_query(text)
    assert isinstance(found, Query), found
    assert sorted(found.names) == sorted(REUSED[text])


@pytest.mark.parametrize("text", ["INSERT INTO t VALUES (1)", "DROP TABLE t", "MERGE INTO t USING s ON t.a = s.a"])
def test_other_statements_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"use lake\.sql"):
        read_query(text)


def test_each_table_of_the_text_is_read_at_its_version_and_the_date_is_a_constant() -> None:
    text = "SELECT t.a, current_date(), curdate() AS d FROM s.t JOIN s.u AS v ON 1 = 1 JOIN t FOR VERSION AS OF 3"
    query = read_query(text)
    assert isinstance(query, Query)

    def at(name: str, point: TablePoint | None) -> str:
        return f"<{name} {'now' if point is None else point.version}>"

    tables = {name: (lambda point, name=name: at(name, point)) for name in query.names}
    assert pinned(query, tables, date(2026, 3, 1)) == (
        "SELECT t.a, DATE'2026-03-01', DATE'2026-03-01' AS d FROM <s.t now> AS `t` JOIN <s.u now> AS v"
        " ON 1 = 1 JOIN <t 3> AS `t`"
    )
    assert "current_date()" in pinned(query, tables, None)


QUALIFIED = {
    "SELECT shop.orders.id FROM shop.orders": "SELECT orders.id FROM <> AS `orders`",
    "SELECT `Shop` . ORDERS.*, 1 FROM shop.orders": "SELECT ORDERS.*, 1 FROM <> AS `orders`",
    "SELECT c.s.t.a, s.t.a.b FROM c.s.t ORDER BY t.a": "SELECT t.a, t.a.b FROM <> AS `t` ORDER BY t.a",
    "SELECT delta.`/p`.id FROM delta.`/p`": "SELECT `/p`.id FROM <> AS `/p`",
    "SELECT s.t.a FROM s.t VERSION AS OF 3": "SELECT t.a FROM <> AS `t`",
    "SELECT s.t.a, t.b FROM s.u AS t": "SELECT s.t.a, t.b FROM <> AS t",
}


@pytest.mark.parametrize("text", QUALIFIED)
def test_a_column_is_qualified_by_the_alias_of_its_table(text: str) -> None:
    query = read_query(text)
    assert isinstance(query, Query)
    assert pinned(query, {name: lambda _: "<>" for name in query.names}, None) == QUALIFIED[text]
    assert unclear(query.tree, query.unaliased, {"id", "a"}) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT a.t.x FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE b.t.x = a.t.x)",
            "t is another name of the query",
        ),
        ("SELECT a.t.x FROM a.t JOIN b.u AS t ON a.t.x = t.y", "t is another name of the query, too"),
        ("WITH t AS (SELECT 1) SELECT a.t.x FROM a.t", "t is another name of the query, too"),
        ("SELECT a.t.x FROM a.t", "a is a column, too"),
    ],
)
def test_a_column_whose_alias_is_not_clear_is_left_to_spark(text: str, reason: str) -> None:
    query = read_query(text)
    assert isinstance(query, Query)
    found = unclear(query.tree, query.unaliased, {"a"} if "column" in reason else set())
    assert found is not None
    assert found[1].startswith(reason)


def test_white_space_and_comments_do_not_count_if_that_is_asked_for() -> None:
    one = "SELECT  a -- the first\n FROM t /* all */ WHERE b = 'x  y'"
    other = "SELECT a FROM t WHERE b = 'x  y'"
    assert normalised(one) == normalised(other)
    assert normalised(one) != normalised(other.replace("x  y", "x y"))
    assert normalised(one) != normalised(other.replace("SELECT a", "SELECT A"))


def test_a_name_that_no_table_and_no_part_of_the_query_has_may_be_a_variable() -> None:
    query = read_query("SELECT x, s.y, n AS m, dateadd(DAY, 1, d) FROM t WHERE m > factor")
    assert isinstance(query, Query)
    assert query.no_column(frozenset({"x", "s", "n", "d"})) == "factor"
    assert query.no_column(frozenset({"x", "s", "n", "d", "factor"})) is None


def test_the_key_depends_on_which_name_is_which_table() -> None:
    one, two = (Leaf(name, f"/{name}", name, 1, 1) for name in ("a", "b"))
    keys = {
        key_of("SELECT 1", {}, (one, two), None),
        key_of("SELECT 1", {}, (two, one), None),
        key_of("SELECT 1", {"spark.sql.ansi.enabled": "false"}, (one, two), None),
        key_of("SELECT 1", {}, (one, two), date(2026, 3, 1)),
        key_of("select 1", {}, (one, two), None),
    }
    assert len(keys) == 5


def test_settings_of_speed_and_place_do_not_count_and_unknown_ones_do() -> None:
    harmless = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.executor.memory": "1g",
    }
    counted = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "com.example.Mine",
        "spark.sql.someday.known": "true",
        "spark.sql.files.ignoreMissingFiles": "true",
    }
    assert affecting({**harmless, **counted}) == dict(sorted(counted.items()))


def test_no_function_is_both_pure_and_refused() -> None:
    assert not [name for name in PURE if reason_against(name) is not None]
    assert all(re.fullmatch(r"[a-z_0-9]+", name) for name in PURE)


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("SELECT current_date FROM t", {"a"}, False),
        ("SELECT current_date AS current_date FROM t", {"a"}, False),
        ("SELECT current_date() FROM t", {"current_date"}, False),
        ("SELECT current_date FROM t", {"current_date"}, True),
        ("SELECT a current_date FROM t", {"a"}, True),
        ("SELECT current_date FROM (SELECT a AS current_date FROM t)", {"a"}, True),
        ("SELECT current_date FROM t AS u(current_date)", {"a"}, True),
    ],
)
def test_a_column_comes_before_the_date_of_the_same_name(text: str, columns: set[str], expected: bool) -> None:
    query = read_query(text)
    assert isinstance(query, Query)
    assert query.takes_date_for_column(frozenset(columns)) is expected


def test_an_answer_is_found_by_its_text_as_it_stands_and_normalised() -> None:
    text = "SELECT  a FROM t -- all"
    assert digests_of(f" {text} ;") == {digest_of(text), digest_of("SELECT a FROM t")}
    assert digest_of("SELECT 'a") in digests_of("SELECT 'a")
