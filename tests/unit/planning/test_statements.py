"""SQL statements become values: kind, target, and names that can be exchanged in place."""

from __future__ import annotations

import pytest

from tidemark.errors import StatementRefused
from tidemark.sql.statements import StatementKind, parse_statement, parse_write, path_name, splice


@pytest.mark.parametrize(
    ("sql", "kind", "target", "names"),
    [
        ("INSERT INTO mart.t SELECT * FROM s", StatementKind.INSERT, "mart.t", ("mart.t", "s")),
        ("INSERT INTO t (a, b) VALUES (1, 2)", StatementKind.INSERT, "t", ("t",)),
        ("INSERT INTO t TABLE s", StatementKind.INSERT, "t", ("t", "s")),
        ("INSERT OVERWRITE t SELECT a FROM s", StatementKind.INSERT_OVERWRITE, "t", ("t", "s")),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", StatementKind.MERGE, "t", ("t", "s")),
        ("UPDATE t SET a = 1 WHERE id = 2", StatementKind.UPDATE, "t", ("t",)),
        ("DELETE FROM delta.`/a b/t` WHERE id = 1", StatementKind.DELETE, "delta.`/a b/t`", ("delta.`/a b/t`",)),
        ("WITH c AS (SELECT * FROM s) INSERT INTO t SELECT * FROM c", StatementKind.INSERT, "t", ("s", "t")),
        ("SELECT * FROM s JOIN `x y`.`z` z ON s.i = z.i;", StatementKind.SELECT, None, ("s", "x y.z")),
        ("SELECT * FROM a UNION ALL SELECT * FROM b", StatementKind.SELECT, None, ("a", "b")),
    ],
)
def test_a_statement_tells_its_kind_its_target_and_the_tables_it_names(sql, kind, target, names):
    parsed = parse_statement(sql)
    assert parsed.kind is kind
    assert (parsed.target.name if parsed.target else None) == target
    assert parsed.names == names


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t AS SELECT * FROM s",
        "DROP TABLE t",
        "TRUNCATE TABLE t",
        "ALTER TABLE t ADD COLUMN x INT",
        "OPTIMIZE t",
        "VACUUM t",
        "COPY INTO t FROM '/x' FILEFORMAT = JSON",
        "FROM s INSERT INTO t SELECT * INSERT INTO u SELECT *",
        "INSERT OVERWRITE DIRECTORY '/x' SELECT 1",
        "INSERT INTO t SELECT 1; INSERT INTO t SELECT 2",
        "this is no statement",
        "SELECT FROM WHERE",
        "",
        "SELECT * FROM s",
    ],
)
def test_what_cannot_happen_once_is_refused_with_its_text(sql):
    with pytest.raises(StatementRefused) as refused:
        parse_write(sql)
    assert refused.value.facts["sql"] == sql


NAMES = {"mart.flights": path_name("/lake/mart/flights"), "s": "view_0", "other": path_name("/lake/o`o")}


@pytest.mark.parametrize(
    ("sql", "spliced"),
    [
        (
            "MERGE INTO mart.flights USING s ON flights.id = s.id WHEN NOT MATCHED THEN INSERT *",
            "MERGE INTO delta.`/lake/mart/flights` AS `flights` USING view_0 AS `s` ON flights.id = s.id "
            "WHEN NOT MATCHED THEN INSERT *",
        ),
        (
            "MERGE INTO mart.flights AS f USING (SELECT * FROM s WHERE x = 's') z "
            "ON f.id = z.id WHEN MATCHED THEN DELETE",
            "MERGE INTO delta.`/lake/mart/flights` AS f USING (SELECT * FROM view_0 AS `s` WHERE x = 's') z "
            "ON f.id = z.id WHEN MATCHED THEN DELETE",
        ),
        ("INSERT INTO mart.flights SELECT * FROM S x", "INSERT INTO delta.`/lake/mart/flights` SELECT * FROM view_0 x"),
        ("INSERT INTO mart.flights TABLE s", "INSERT INTO delta.`/lake/mart/flights` TABLE view_0"),
        ("UPDATE mart.flights SET a = 1", "UPDATE delta.`/lake/mart/flights` AS `flights` SET a = 1"),
        (
            "SELECT s.a /* s */ FROM s, other -- s",
            "SELECT s.a /* s */ FROM view_0 AS `s`, delta.`/lake/o``o` AS `other` -- s",
        ),
        ("SELECT * FROM other VERSION AS OF 3", "SELECT * FROM delta.`/lake/o``o` VERSION AS OF 3"),
        ("SELECT * FROM unknown", "SELECT * FROM unknown"),
    ],
)
def test_names_are_exchanged_in_place_and_keep_their_qualifiers(sql, spliced):
    assert splice(parse_statement(sql), NAMES) == spliced


@pytest.mark.parametrize(
    ("sql", "spliced"),
    [
        ("WITH s AS (SELECT * FROM s) SELECT * FROM s", "WITH s AS (SELECT * FROM view_0 AS `s`) SELECT * FROM s"),
        (
            "INSERT INTO mart.flights WITH c AS (SELECT * FROM s), s AS (SELECT * FROM c) SELECT * FROM s JOIN c",
            "INSERT INTO delta.`/lake/mart/flights` WITH c AS (SELECT * FROM view_0 AS `s`), s AS (SELECT * FROM c) "
            "SELECT * FROM s JOIN c",
        ),
        (
            "SELECT * FROM (WITH s AS (SELECT 1 AS a) SELECT * FROM s) JOIN s",
            "SELECT * FROM (WITH s AS (SELECT 1 AS a) SELECT * FROM s) JOIN view_0 AS `s`",
        ),
    ],
)
def test_names_given_by_WITH_are_not_tables(sql, spliced):
    assert splice(parse_statement(sql), NAMES) == spliced


def test_metadata_columns_need_no_quotes_but_text_in_quotes_stays():
    sql = "INSERT INTO t SELECT s.METADATA$ACTION, 'METADATA$ACTION', `METADATA$ISUPDATE`, metadata$row_id FROM s"
    assert parse_write(sql).sql == (
        "INSERT INTO t SELECT s.`METADATA$ACTION`, 'METADATA$ACTION', `METADATA$ISUPDATE`, `METADATA$ROW_ID` FROM s"
    )


def test_a_merge_with_schema_evolution_keeps_its_clause():
    sql = "MERGE WITH SCHEMA EVOLUTION INTO mart.flights USING s ON flights.id = s.id WHEN NOT MATCHED THEN INSERT *"
    assert splice(parse_write(sql), NAMES).startswith("MERGE WITH SCHEMA EVOLUTION INTO delta.`/lake/mart/flights` AS")
