"""Groups, DISTINCT and optional partners, with `beyond_snowflake`: what Snowflake refuses."""

from __future__ import annotations

import pytest

from tests.engine.views.view_lake import ViewLake
from tidemark.changes.planning.views.plan import Way
from tidemark.errors import ViewRefused

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(views: ViewLake) -> ViewLake:
    views.table(
        "o", "id INT, k INT, n INT, v STRING", "(1, 1, 10, 'a'), (2, 1, 20, 'b'), (3, 2, 5, 'a'), (4, NULL, 1, 'z')"
    )
    views.table("c", "k INT, name STRING", "(1, 'Ann'), (2, 'Bob'), (3, 'Cid')")
    views.mark()
    return views


def test_a_changed_group_is_a_pair_and_others_are_not_shown(shop: ViewLake) -> None:
    shown = "k, count(*) AS r, sum(n) AS s, avg(n) AS m, min(n) AS low, max(n) AS high, count(DISTINCT v) AS kinds"
    query = shop.view("v", f"SELECT {shown} FROM {{db}}.o GROUP BY k", beyond=True)
    shop.sql(
        "UPDATE {db}.o SET n = 30 WHERE id = 2",
        "DELETE FROM {db}.o WHERE id = 3",
        "INSERT INTO {db}.o VALUES (5, 7, 1, 'x'), (6, NULL, 3, 'z')",
    )
    assert shop.plan(query).way is Way.GROUPS
    assert shop.changes(query) == sorted(
        [
            ("DELETE", True, 1, 2, 30, 15.0, 10, 20, 2),
            ("INSERT", True, 1, 2, 40, 20.0, 10, 30, 2),
            ("DELETE", False, 2, 1, 5, 5.0, 5, 5, 1),
            ("INSERT", False, 7, 1, 1, 1.0, 1, 1, 1),
            ("DELETE", True, None, 1, 1, 1.0, 1, 1, 1),
            ("INSERT", True, None, 2, 4, 2.0, 1, 3, 1),
        ],
        key=repr,
    )


def test_without_groups_the_whole_is_one_and_the_plan_says_so(shop: ViewLake) -> None:
    query = shop.view("v", "SELECT max(n) AS top FROM {db}.o", beyond=True)
    shop.sql("UPDATE {db}.o SET n = 99 WHERE id = 1")
    assert shop.plan(query).way is Way.WHOLE
    assert "no column ties" in shop.plan(query).in_words()
    assert shop.changes(query) == [("DELETE", True, 20), ("INSERT", True, 99)]


def test_distinct_shows_the_first_and_the_last_of_equal_rows(shop: ViewLake) -> None:
    query = shop.view("v", "SELECT DISTINCT v FROM {db}.o", beyond=True)
    shop.sql("DELETE FROM {db}.o WHERE id = 1")
    assert shop.changes(query) == []
    shop.sql("DELETE FROM {db}.o WHERE id = 3", "INSERT INTO {db}.o VALUES (8, 1, 1, 'new'), (9, 1, 1, 'new')")
    assert shop.changes(query) == [("DELETE", False, "a"), ("INSERT", False, "new")]


def test_an_outer_join_shows_partners_come_and_go(shop: ViewLake) -> None:
    query = shop.view("v", "SELECT o.id, c.name FROM {db}.o LEFT JOIN {db}.c ON o.k = c.k", beyond=True)
    shop.sql(
        "DELETE FROM {db}.c WHERE k = 2",
        "UPDATE {db}.c SET name = 'ANN' WHERE k = 1",
        "DELETE FROM {db}.o WHERE id = 2",
    )
    assert shop.plan(query).way is Way.KEYS
    assert shop.changes(query) == sorted(
        [
            ("DELETE", True, 1, "Ann"),
            ("INSERT", True, 1, "ANN"),
            ("DELETE", False, 2, "Ann"),
            ("DELETE", False, 3, "Bob"),
            ("INSERT", False, 3, None),
        ],
        key=repr,
    )


def test_semi_and_anti_joins_show_rows_as_they_pass(shop: ViewLake) -> None:
    semi = shop.view("semi", "SELECT id FROM {db}.o LEFT SEMI JOIN {db}.c ON o.k = c.k", beyond=True)
    anti = shop.view("anti", "SELECT id FROM {db}.o LEFT ANTI JOIN {db}.c ON o.k = c.k", beyond=True)
    shop.sql(
        "DELETE FROM {db}.c WHERE k = 2",
        "INSERT INTO {db}.c VALUES (1, 'twin')",
        "INSERT INTO {db}.o VALUES (5, 3, 0, '')",
    )
    assert shop.changes(semi) == [("DELETE", False, 3), ("INSERT", False, 5)]
    assert shop.changes(anti) == [("INSERT", False, 3)]


def test_the_key_of_a_group_is_exact(views: ViewLake) -> None:
    views.table(
        "t",
        "at TIMESTAMP, n INT",
        "(TIMESTAMP'2026-01-01 00:00:00.000001', 1), (TIMESTAMP'2026-01-01 00:00:00.000002', 1)",
    )
    query = views.view("v", "SELECT at, sum(n) AS n FROM {db}.t GROUP BY at", beyond=True)
    views.mark()
    views.sql("UPDATE {db}.t SET n = n + 1")
    assert [row[0:2] for row in views.changes(query)] == [("DELETE", True)] * 2 + [("INSERT", True)] * 2


def test_without_the_flag_it_is_refused_with_the_place(shop: ViewLake) -> None:
    with pytest.raises(ViewRefused, match=r"with GROUP BY\. View .*v, line 2, column 1: 'GROUP BY k'"):
        shop.view("v", "SELECT k, sum(n) AS n FROM {db}.o\nGROUP BY k")
